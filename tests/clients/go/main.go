// Idempotent produce with franz-go or sarama, then everything read back by partition.
//
// Usage: main CLIENT BOOTSTRAP TOPIC RECORDS. Prints "half" when half of the records are
// acknowledged, so that whoever started it can kill a leader; then "ok N" or what is wrong, with
// status 1. With RECORDS 0, see refused.go.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	seeds, topic := strings.Split(os.Args[2], ","), os.Args[3]
	records, err := strconv.Atoi(os.Args[4])
	if err == nil && records == 0 {
		refused(seeds, topic)
		return
	}
	if err == nil {
		client := map[string]func([]string, string, int) ([]string, error){
			"franz-go": franz, "sarama": viaSarama,
		}[os.Args[1]]
		var found []string
		if found, err = client(seeds, topic, records); err == nil {
			err = check(found, records)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ok", records)
}

func check(found []string, records int) error {
	for number := 0; number < records; number++ {
		if number >= len(found) || found[number] != strconv.Itoa(number) {
			return fmt.Errorf("wrong at %d of %d", number, len(found))
		}
	}
	if len(found) != records {
		return fmt.Errorf("%d records", len(found))
	}
	return nil
}

func franz(seeds []string, topic string, records int) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
			topic: {0: kgo.NewOffset().AtStart()},
		}),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var acked atomic.Int64
	var failed atomic.Value
	for number := 0; number < records; number++ {
		record := &kgo.Record{Topic: topic, Value: []byte(strconv.Itoa(number))}
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(err)
			}
			if acked.Add(1) == int64(records/2) {
				fmt.Println("half")
			}
		})
		if number%20 == 0 {
			time.Sleep(2 * time.Millisecond)
		}
	}
	if err := client.Flush(ctx); err != nil {
		return nil, err
	}
	if err := failed.Load(); err != nil {
		return nil, err.(error)
	}
	var found []string
	for len(found) < records {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(each *kgo.Record) { found = append(found, string(each.Value)) })
	}
	return found, nil
}

func viaSarama(seeds []string, topic string, records int) ([]string, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Retry.Max = 50
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewAsyncProducer(seeds, config)
	if err != nil {
		return nil, err
	}
	go func() {
		for number := 0; number < records; number++ {
			value := sarama.StringEncoder(strconv.Itoa(number))
			producer.Input() <- &sarama.ProducerMessage{Topic: topic, Value: value}
			if number%20 == 0 {
				time.Sleep(2 * time.Millisecond)
			}
		}
	}()
	for acked := 1; acked <= records; acked++ {
		select {
		case <-producer.Successes():
		case refused := <-producer.Errors():
			return nil, refused
		}
		if acked == records/2 {
			fmt.Println("half")
		}
	}
	if err := producer.Close(); err != nil {
		return nil, err
	}
	consumer, err := sarama.NewConsumer(seeds, config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	var found []string
	for int64(len(found)) < partition.HighWaterMarkOffset() || len(found) < records {
		select {
		case each := <-partition.Messages():
			found = append(found, string(each.Value))
		case <-time.After(20 * time.Second):
			return nil, fmt.Errorf("%d records, and no more", len(found))
		}
	}
	return found, nil
}
