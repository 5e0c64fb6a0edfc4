package wire

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A body survives the way over the wire.
func TestBodiesRoundTrip(t *testing.T) {
	over := func(t *rapid.T, h Header) *Header {
		b := make([]byte, Size)
		Encode(b, &h)
		got, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		return &got
	}
	rapid.Check(t, func(t *rapid.T) {
		i32, i64 := rapid.Int32(), rapid.Int64()
		saved := FileSaved{Rank: i32.Draw(t, "rank"), Kind: FileKind(i32.Draw(t, "kind")), Index: i32.Draw(t, "index"),
			Place:   FilePlace(i32.Draw(t, "place")),
			Version: i64.Draw(t, "version"), Bytes: i64.Draw(t, "bytes"), CRC32C: rapid.Uint32().Draw(t, "crc"),
			Took: time.Duration(i64.Draw(t, "took")), Failed: rapid.Bool().Draw(t, "failed")}
		if got := FileSavedOf(over(t, saved.Header())); got != saved {
			t.Errorf("%+v came back as %+v", saved, got)
		}
		stale := Staleness{Server: i32.Draw(t, "server"), Rule: i32.Draw(t, "rule"), Versions: i64.Draw(t, "versions"),
			Pushes: i64.Draw(t, "pushes"), Delayed: i64.Draw(t, "delayed")}
		if got := StalenessOf(over(t, stale.Header())); got != stale {
			t.Errorf("%+v came back as %+v", stale, got)
		}
		stop := StopAsked{Rank: i32.Draw(t, "stopped"), Again: rapid.Bool().Draw(t, "again")}
		if got := StopAskedOf(over(t, stop.Header())); got != stop {
			t.Errorf("%+v came back as %+v", stop, got)
		}
		if !stop.Again {
			stop.Diverged = rapid.Bool().Draw(t, "diverged")
			if got := StopAskedOf(over(t, stop.Header())); got != stop {
				t.Errorf("%+v came back as %+v", stop, got)
			}
		}
		index := i64.Draw(t, "snapshot")
		all := []Header{SnapshotAsked(3, index), SnapshotKept(index), SnapshotLooked(index), SnapshotToEvaluate(index)}
		for _, h := range all {
			if got := over(t, h).SnapshotIndex(); got != index {
				t.Errorf("snapshot %d came back as %d", index, got)
			}
		}
	})
}

// An evaluation comes back as it was, also one whose loss is no number.
func TestEvaluationsComeBack(t *testing.T) {
	half := Evaluation{Index: 7, Loss: 1.5, Correct: 3, Took: time.Second}
	asked := CheckpointToEvaluate(9)
	ofCheckpoint := ToEvaluate(&asked)
	snapshot := SnapshotToEvaluate(9)
	if !ofCheckpoint.OfCheckpoint() || ofCheckpoint.Index != 9 || ToEvaluate(&snapshot) != (Evaluation{Index: 9}) {
		t.Errorf("a checkpoint to evaluate came back as %+v", ofCheckpoint)
	}
	ofCheckpoint.Loss = 2
	for _, e := range []Evaluation{{}, half, ofCheckpoint, {Index: 1, Loss: math.Inf(1)}, {Loss: math.NaN()}} {
		h := e.Header()
		got := EvaluationOf(&h)
		if math.IsNaN(e.Loss) != math.IsNaN(got.Loss) || !math.IsNaN(e.Loss) && got != e {
			t.Errorf("%+v came back as %+v", e, got)
		}
	}
}

// Each kind counts as traffic of training or does not, by its own row.
func TestKindsOfTraining(t *testing.T) {
	not := map[Kind]bool{Snapshot: true, Ready: true, Looked: true, Halt: true, Saved: true, Stale: true, Measured: true, Dealt: true,
		Evaluate: true, Evaluated: true}
	for k := Push; k < Kinds; k++ {
		if k.Training() == not[k] {
			t.Errorf("%v: training %t", k, k.Training())
		}
	}
}
