// Scenarios with the franz-go client against a cluster: `franz SEEDS SCENARIO`.
//
// The environment says how it connects (security.go). Exits with 0 if every check passed, otherwise with 1 and a sentence. Scenarios create their own topics and groups, named after
// themselves, so that each can be run once against a cluster.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 4 * time.Minute

// A run of one scenario.
type run struct {
	context.Context
	seeds []string
	name  string
	admin *kadm.Client
}

var scenarios = map[string]func(run){
	"produce":      produce,
	"classic":      classicGroup,
	"consumer":     consumerGroup,
	"transactions": transactions,
	"fencing":      fencing,
	"admin":        administer,
	"secured":      secure,
}

func main() {
	if len(os.Args) != 3 || scenarios[os.Args[2]] == nil {
		fail("usage: franz SEEDS SCENARIO")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r := run{Context: ctx, seeds: strings.Split(os.Args[1], ","), name: os.Args[2]}
	client := r.client()
	defer client.Close()
	r.admin = kadm.NewClient(client)
	scenarios[r.name](r)
	fmt.Println("done")
}

func (r run) client(options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(r.options(options...)...)
	must(err)
	return client
}

func (r run) options(options ...kgo.Opt) []kgo.Opt {
	ours := append([]kgo.Opt{kgo.SeedBrokers(r.seeds...), kgo.ClientID("franz-" + r.name)}, secured()...)
	return append(ours, options...)
}

// topic creates a topic of this scenario, and returns its name.
func (r run) topic(suffix string, partitions int32) string {
	name := r.name + "-" + suffix
	_, err := r.admin.CreateTopic(r, partitions, 1, nil, name)
	must(err)
	return name
}

// numbered are records with the numbers from `first` up to `end` as keys and values, one partition after the other.
func numbered(topic string, partitions, first, end int) []*kgo.Record {
	var records []*kgo.Record
	for n := first; n < end; n++ {
		text := []byte(fmt.Sprint(n))
		records = append(records, &kgo.Record{Topic: topic, Partition: int32(n % partitions), Key: text, Value: text})
	}
	return records
}

// send produces records to the partitions that they name.
func (r run) send(records []*kgo.Record) {
	producer := r.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer producer.Close()
	must(producer.ProduceSync(r, records...).FirstErr())
}

// poll returns the next records; it is an error if there are none.
func poll(ctx context.Context, client *kgo.Client) []*kgo.Record {
	fetches := client.PollRecords(ctx, 100)
	for _, failed := range fetches.Errors() {
		fail("fetching %s-%d: %v", failed.Topic, failed.Partition, failed.Err)
	}
	return fetches.Records()
}

// committed is the sum of a group's committed offsets in a topic.
func (r run) committed(group, topic string) int64 {
	offsets, err := r.admin.FetchOffsets(r, group)
	must(err)
	must(offsets.Error())
	var sum int64
	for _, each := range offsets[topic] {
		sum += each.At
	}
	return sum
}

func must(err error) {
	if err != nil {
		panic(err) // a panic prints the stack
	}
}

func expect(what string, got, wanted any) {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		fail("%s: %v, but it must be %v", what, got, wanted)
	}
}

func fail(format string, facts ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", facts...)
	os.Exit(1)
}
