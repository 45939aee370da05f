package main

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// transactions reads, writes and commits in one step, giving up every third time: each input has one output that counts.
func transactions(r run) {
	const partitions, count = 3, 600
	input, output, group := r.topic("input", partitions), r.topic("output", partitions), r.name+"-group"
	r.send(numbered(input, partitions, 0, count))
	session, err := kgo.NewGroupTransactSession(r.options(
		kgo.TransactionalID(r.name), kgo.ConsumerGroup(group), kgo.ConsumeTopics(input), kgo.DefaultProduceTopic(output),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)...)
	must(err)
	given := 0
	for round := 1; r.committed(group, input) < count; round++ {
		fetches := session.PollRecords(r, 50)
		for _, failed := range fetches.Errors() {
			fail("fetching %s-%d: %v", failed.Topic, failed.Partition, failed.Err)
		}
		must(session.Begin())
		outputs := make([]*kgo.Record, 0, fetches.NumRecords())
		for _, record := range fetches.Records() {
			outputs = append(outputs, &kgo.Record{Key: record.Key, Value: []byte("seen " + string(record.Value))})
		}
		must(session.ProduceSync(r, outputs...).FirstErr())
		wanted := kgo.TransactionEndTry(round%3 != 0)
		committed, err := session.End(r, wanted)
		must(err)
		expect("whether a transaction was committed", committed, bool(wanted))
		if !committed {
			given += fetches.NumRecords()
		}
	}
	session.Close()
	if given == 0 {
		fail("no transaction with records was given up")
	}

	reader := r.client(
		kgo.ConsumeTopics(output), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	defer reader.Close()
	seen := make(map[string]int)
	for len(seen) < count {
		for _, record := range poll(r, reader) {
			seen[string(record.Value)]++
		}
	}
	for n := range count {
		expect(fmt.Sprintf("outputs of %d that count", n), seen[fmt.Sprintf("seen %d", n)], 1)
	}
	all, err := r.admin.ListEndOffsets(r, output)
	must(err)
	var end int64
	all.Each(func(each kadmOffset) { end += each.Offset })
	if end < int64(count+given) {
		fail("%d records and markers are in the output, fewer than the %d that were sent", end, count+given)
	}
}

// fencing has a second producer take over a transactional id: what the first began is given up, and it may not go on.
func fencing(r run) {
	topic := r.topic("output", 1)
	first, second := r.client(kgo.TransactionalID(r.name)), r.client(kgo.TransactionalID(r.name))
	defer first.Close()
	defer second.Close()
	must(first.BeginTransaction())
	must(first.ProduceSync(r, &kgo.Record{Topic: topic, Value: []byte("first")}).FirstErr())
	described, err := r.admin.DescribeTransactions(r, r.name)
	must(err)
	expect("state of the first", described[r.name].State, "Ongoing")

	must(second.BeginTransaction())
	must(second.ProduceSync(r, &kgo.Record{Topic: topic, Value: []byte("second")}).FirstErr())
	must(first.Flush(r))
	err = first.EndTransaction(r, kgo.TryCommit)
	if !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.ProducerFenced) {
		fail("the first was not fenced: %v", err)
	}
	must(second.EndTransaction(r, kgo.TryCommit))

	reader := r.client(
		kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	defer reader.Close()
	expect("the first record that counts", string(poll(r, reader)[0].Value), "second")
}
