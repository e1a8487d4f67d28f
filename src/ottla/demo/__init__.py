"""The main job: real producers write through failing leaders, and every record is accounted for."""
