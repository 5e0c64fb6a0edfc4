package station_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
)

// noSharedMemory is a Transport without shared memory.
type noSharedMemory struct{ comm.Transport }

func (p noSharedMemory) Shared(int) (*comm.Window, error) {
	return nil, fmt.Errorf("rank 1 cannot have 5 bytes: %w", comm.ErrNoMemory)
}

type lines = stationtest.Lines

// Without shared memory ranks send messages, and one of them warns.
func TestWithoutSharedMemoryRanksSendMessages(t *testing.T) {
	set := []string{"evaluate.every_epochs=0"}
	want := sidestest.Train(t, configstest.Load(t, append(set, "cluster.shared_memory=off")...), 6, sidestest.Options{})
	var warned lines
	var ts []comm.Transport
	for _, tr := range stationtest.Transports(stationtest.OneHost(6)) {
		ts = append(ts, noSharedMemory{tr})
	}
	got := sidestest.Train(t, configstest.Load(t, set...), 6,
		sidestest.Options{Transports: ts, Thresholds: layout.Thresholds{Shared: 1}, Warn: &warned})
	if got.SHA256() != want.SHA256() || got.Shared != 0 || got.Sent != want.Sent {
		t.Errorf("sha256 %s, %d bytes shared, %d sent; want %s, 0, %d", got.SHA256(), got.Shared, got.Sent, want.SHA256(), want.Sent)
	}
	if text := warned.String(); strings.Count(text, "WARN") != 1 || !strings.Contains(text, "no shared memory") ||
		!strings.Contains(text, "rank 1 cannot have 5 bytes") {
		t.Errorf("warnings %q", text)
	}
}

// Where the ranks of a host compute as one worker, ranks with the same host name must share memory: else all ranks refuse alike.
func TestHierarchyRefusesNamesThatAreNotHosts(t *testing.T) {
	for _, c := range []struct{ memory, names, want string }{
		{"aabb", "aaaa", "rank 2, host a has the name of rank 0's host, but shares memory with rank 2, host a"},
		{"aaaa", "aabb", "rank 2, host b has the name of rank 2's host, but shares memory with rank 0, host a"},
		{"abab", "abab", ""},
	} {
		w := stationtest.World{Config: configstest.Load(t), Hosts: c.names, Transports: stationtest.Transports(c.memory)}
		for i, err := range w.Each(t, (*station.Station).SameNodes) {
			var agreed *station.ExitError
			if c.want == "" && err == nil {
				continue
			}
			if !errors.As(err, &agreed) || agreed.Code != station.CodeUsage || !strings.Contains(err.Error(), c.want) {
				t.Errorf("rank %d: %v; want code %d and %q", i, err, station.CodeUsage, c.want)
			}
		}
	}
}
