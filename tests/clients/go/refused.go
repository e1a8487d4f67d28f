// What franz-go says where it would need a group or a transaction, and after how long: one line for
// each case, with name, milliseconds and the error.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func told(name string, step func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	began := time.Now()
	err := step(ctx)
	fmt.Println(name, time.Since(began).Milliseconds(), err)
}

func refused(seeds []string, topic string) {
	group, err := kgo.NewClient(
		kgo.SeedBrokers(seeds...), kgo.ConsumerGroup("g"), kgo.ConsumeTopics(topic),
	)
	if err != nil {
		panic(err)
	}
	told("subscribe", func(ctx context.Context) error { return group.PollFetches(ctx).Err() })
	told("close", func(context.Context) error { group.Close(); return nil })
	writer, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.TransactionalID("x"))
	if err != nil {
		panic(err)
	}
	told("transaction", func(context.Context) error { return writer.BeginTransaction() })
	told("close-producer", func(context.Context) error { writer.Close(); return nil })
}
