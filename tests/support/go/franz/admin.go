package main

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

type kadmOffset = kadm.ListedOffset

// administer creates, describes, changes and deletes topics, settings, records, offsets and groups. Metadata of topics may lag
// behind acknowledged changes, as with Kafka.
func administer(r run) {
	topic := r.changeTopic()
	r.changeOffsets(topic)
	_, err := r.admin.DeleteTopic(r, topic)
	must(err)
	_, err = r.admin.DeleteTopic(r, topic)
	expectError("deleting it again", err, kerr.UnknownTopicOrPartition)
	r.await("it is no longer listed", func() bool {
		topics, err := r.admin.ListTopics(r)
		must(err)
		return !topics.Has(topic)
	})
}

// changeTopic creates a topic of 5 partitions with 100 records, and deletes the first 10 of the first partition.
func (r run) changeTopic() string {
	brokers, err := r.admin.BrokerMetadata(r)
	must(err)
	expect("brokers", len(brokers.Brokers), 1)
	name, limit := r.name+"-topic", "86400000"
	made, err := r.admin.CreateTopic(r, 3, 1, map[string]*string{"retention.ms": &limit}, name)
	must(err)
	expect("partitions at first", made.NumPartitions, 3)
	_, err = r.admin.CreateTopic(r, 3, 1, nil, name)
	expectError("making it twice", err, kerr.TopicAlreadyExists)
	_, err = r.admin.CreateTopic(r, 3, 1, nil, "no/name")
	expectError("a name that is none", err, kerr.InvalidTopicException)
	added, err := r.admin.UpdatePartitions(r, 5, name)
	must(err)
	must(added.Error())
	var topics kadm.TopicDetails
	r.await("all partitions are listed", func() bool {
		topics, err = r.admin.ListTopics(r, name)
		must(err)
		return len(topics[name].Partitions) == 5
	})
	expect("id", topics[name].ID, made.ID)

	r.changeSetting(name, limit)
	r.send(numbered(name, 5, 0, 100))
	removed, err := r.admin.DeleteRecords(r, offsetsOf(name, 0, 10))
	must(err)
	must(removed.Error())
	starts, err := r.admin.ListStartOffsets(r, name)
	must(err)
	ends, err := r.admin.ListEndOffsets(r, name)
	must(err)
	first, _ := starts.Lookup(name, 0)
	last, _ := ends.Lookup(name, 0)
	expect("first and last offset", []int64{first.Offset, last.Offset}, []int64{10, 20})
	folders, err := r.admin.DescribeAllLogDirs(r, topics.TopicsSet())
	must(err)
	var copies int
	folders.Each(func(folder kadm.DescribedLogDir) { copies += len(folder.Topics[name]) })
	expect("copies of partitions", copies, 5)
	return name
}

func (r run) changeSetting(topic, before string) {
	settings := func() map[string]string {
		described, err := r.admin.DescribeTopicConfigs(r, topic)
		must(err)
		one, err := described.On(topic, nil)
		must(err)
		must(one.Err)
		found := make(map[string]string)
		for _, each := range one.Configs {
			found[each.Key] = each.MaybeValue()
		}
		return found
	}
	r.await("the setting that it was made with is there", func() bool { return settings()["retention.ms"] == before })
	after := "1000000"
	changed, err := r.admin.AlterTopicConfigs(r, []kadm.AlterConfig{
		{Op: kadm.DeleteConfig, Name: "retention.ms"}, {Op: kadm.SetConfig, Name: "max.message.bytes", Value: &after},
	}, topic)
	must(err)
	one, err := changed.On(topic, nil)
	must(err)
	must(one.Err)
	r.await("the change is seen", func() bool { return settings()["max.message.bytes"] == after })
	expect("a setting that was taken back", settings()["retention.ms"], "604800000")
}

// changeOffsets commits for a group that has no members, looks at it, and removes its offsets and the group.
func (r run) changeOffsets(topic string) {
	group := r.name + "-group"
	must(r.admin.CommitAllOffsets(r, group, offsetsOf(topic, 0, 12)))
	expect("committed", r.committed(group, topic), 12)
	lags, err := r.admin.Lag(r, group)
	must(err)
	lag, _ := lags[group].Lag.Lookup(topic, 0)
	expect("lag", lag.Lag, 8)
	expect("state", lags[group].State, "Empty")
	gone, err := r.admin.DeleteOffsets(r, group, kadm.TopicsSet{topic: {0: {}}})
	must(err)
	must(gone.Error())
	expect("committed, when deleted", r.committed(group, topic), 0)
	must(r.admin.CommitAllOffsets(r, group, offsetsOf(topic, 1, 3)))
	_, err = r.admin.DeleteGroup(r, group)
	must(err)
	_, err = r.admin.DeleteGroup(r, group)
	expectError("deleting a group again", err, kerr.GroupIDNotFound)
}

func offsetsOf(topic string, partition int32, at int64) kadm.Offsets {
	offsets := make(kadm.Offsets)
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: at, LeaderEpoch: -1})
	return offsets
}

func expectError(what string, got error, wanted error) {
	if !errors.Is(got, wanted) {
		fail("%s: %v, but it must be %v", what, got, wanted)
	}
}
