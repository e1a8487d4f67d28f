"""The main job: real producers write while leaders fail, and then every record is checked."""
