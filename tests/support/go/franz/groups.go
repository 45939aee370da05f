package main

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const groupPartitions = 6

// A member of a group, which commits the offsets of each poll before the next.
type member struct {
	client *kgo.Client
	done   chan struct{}
	stop   context.CancelFunc

	mutex sync.Mutex
	owned int
	read  map[string]int
}

func classicGroup(r run) {
	r.shareAndLeave(kgo.Balancers(kgo.CooperativeStickyBalancer()))
}

func consumerGroup(r run) {
	// The client uses this protocol if the broker advertises its API.
	r.shareAndLeave(kgo.ServerSideBalancer())
}

// shareAndLeave lets two members share a topic; one leaves, the other continues. Every record is read once.
func (r run) shareAndLeave(protocol kgo.Opt) {
	topic, group := r.topic("input", groupPartitions), r.name+"-group"
	first, second := r.join(topic, group, protocol), r.join(topic, group, protocol)
	r.await("both members have half of the topic", func() bool {
		return first.owns() == groupPartitions/2 && second.owns() == groupPartitions/2
	})
	r.send(numbered(topic, groupPartitions, 0, 600))
	r.await("both have read their half", func() bool { return first.count() == 300 && second.count() == 300 })
	second.leave()
	r.await("the one that stayed has all", func() bool { return first.owns() == groupPartitions })
	r.send(numbered(topic, groupPartitions, 600, 900))
	r.await("it has read the rest", func() bool { return first.count() == 600 })
	r.checkGroup(group, topic)
	first.leave()

	times := make(map[string]int)
	for _, each := range []*member{first, second} {
		for value, count := range each.read {
			times[value] += count
		}
	}
	expect("values that were read", len(times), 900)
	for value, count := range times {
		expect("times that "+value+" was read", count, 1)
	}
	expect("committed offsets", r.committed(group, topic), 900)
}

// checkGroup checks that a group with one member has committed all offsets, and that its description is right.
func (r run) checkGroup(group, topic string) {
	r.await("the group has committed all", func() bool { return r.committed(group, topic) == 900 })
	listed, err := r.admin.ListGroupsByType(r, []string{r.name})
	must(err)
	expect("state in the list of groups of its type", listed[group].State, "Stable")
	if r.name == "classic" {
		lags, err := r.admin.Lag(r, group)
		must(err)
		described := lags[group]
		must(described.Error())
		expect("lag", described.Lag.Total(), 0)
		expect("members", len(described.Members), 1)
	} else {
		described, err := r.admin.DescribeConsumerGroups(r, group)
		must(err)
		must(described[group].Err)
		expect("members", len(described[group].Members), 1)
		expect("partitions of the member", len(described[group].Members[0].Assignment[topic]), groupPartitions)
	}
}

func (r run) join(topic, group string, protocol kgo.Opt) *member {
	m := &member{done: make(chan struct{}), read: make(map[string]int)}
	gain := func(sign int) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			m.owned += sign * len(partitions[topic])
		}
	}
	m.client = r.client(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), protocol, kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(gain(1)), kgo.OnPartitionsRevoked(gain(-1)), kgo.OnPartitionsLost(gain(-1)),
	)
	ctx, stop := context.WithCancel(r)
	m.stop = stop
	go m.consume(ctx)
	return m
}

func (m *member) consume(ctx context.Context) {
	defer close(m.done)
	for {
		fetches := m.client.PollRecords(ctx, 50)
		if ctx.Err() != nil {
			m.client.AllowRebalance()
			return
		}
		for _, failed := range fetches.Errors() {
			fail("fetching %s-%d: %v", failed.Topic, failed.Partition, failed.Err)
		}
		must(m.client.CommitRecords(ctx, fetches.Records()...))
		m.mutex.Lock()
		for _, record := range fetches.Records() {
			m.read[string(record.Value)]++
		}
		m.mutex.Unlock()
		m.client.AllowRebalance()
	}
}

func (m *member) owns() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.owned
}

func (m *member) count() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return len(m.read)
}

func (m *member) leave() {
	m.stop()
	<-m.done
	m.client.CloseAllowingRebalance()
}

func (r run) await(what string, isSo func() bool) {
	for !isSo() {
		select {
		case <-r.Done():
			fail("in vain was waited until %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
