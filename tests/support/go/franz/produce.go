package main

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

// produce sends records with every compression, idempotently, and without waiting; all come back as they were sent, in order.
func produce(r run) {
	const partitions, count = 3, 2000
	for codec := range codecs {
		r.sendAndRead(r.topic(codec, partitions), partitions, count, kgo.ProducerBatchCompression(codecs[codec]))
	}
	for level, acks := range map[string]kgo.Acks{"leader": kgo.LeaderAck(), "no": kgo.NoAck()} {
		r.sendAndRead(r.topic(level, partitions), partitions, count, kgo.RequiredAcks(acks), kgo.DisableIdempotentWrite())
	}
}

func (r run) sendAndRead(topic string, partitions, count int, options ...kgo.Opt) {
	producer := r.client(append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	defer producer.Close()
	start := time.UnixMilli(1_700_000_000_000)
	records := numbered(topic, partitions, 0, count)
	for n, record := range records {
		record.Timestamp = start.Add(time.Duration(n) * time.Millisecond)
		record.Headers = []kgo.RecordHeader{{Key: "n", Value: record.Value}, {Key: "empty", Value: nil}}
	}
	must(producer.ProduceSync(r, records...).FirstErr())

	consumer := r.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer consumer.Close()
	read := make(map[int32]int)
	for total := 0; total < count; {
		for _, record := range poll(r, consumer) {
			n := read[record.Partition]*partitions + int(record.Partition)
			expect(topic+": value", string(record.Value), fmt.Sprint(n))
			expect(topic+": key", string(record.Key), fmt.Sprint(n))
			expect(topic+": offset", record.Offset, read[record.Partition])
			expect(topic+": time", record.Timestamp.UnixMilli(), start.UnixMilli()+int64(n))
			expect(topic+": headers", len(record.Headers), 2)
			expect(topic+": header", string(record.Headers[0].Value), fmt.Sprint(n))
			read[record.Partition]++
			total++
		}
	}
}
