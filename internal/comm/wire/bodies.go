package wire

import (
	"math"
	"time"
)

// Some control messages carry values for which a header has no field of that name. Each of them has a type here; only
// this type knows which fields of the header hold the values. Its method Header writes them, and a function Of reads them.

// FileKind is the kind of a checkpoint's file.
type FileKind int32

const (
	ServerFile FileKind = iota
	WorkerFile
	ManifestFile
	FileKinds
)

// FilePlace is where a checkpoint's file lies.
type FilePlace int32

const (
	InFolder   FilePlace = iota // the run folder
	InMemory                    // the memory of the rank's own host
	InNeighbor                  // the memory of the next host
	OnHost                      // of a manifest: the memory of a host
)

// FileSaved is the body of Saved: a file of a checkpoint was written, or could not be.
type FileSaved struct {
	Rank    int32 // the rank that reports
	Kind    FileKind
	Index   int32 // of the server or worker whose file it is
	Place   FilePlace
	Version int64 // of the lead shard; in memory, the number of the replica
	Bytes   int64
	CRC32C  uint32
	Took    time.Duration // time to write the file
	Failed  bool
}

// Header returns the message.
func (f *FileSaved) Header() Header {
	h := Header{Kind: Saved, Worker: f.Rank, Part: int32(f.Kind), Shard: f.Index, Parts: int32(f.Place), Iter: f.Version,
		Samples: f.Bytes, Version: int64(f.CRC32C), Blocked: int64(f.Took)}
	if f.Failed {
		h.Flags = failed
	}
	return h
}

// FileSavedOf reads the body of Saved.
func FileSavedOf(h *Header) FileSaved {
	return FileSaved{Rank: h.Worker, Kind: FileKind(h.Part), Index: h.Shard, Place: FilePlace(h.Parts), Version: h.Iter,
		Bytes: h.Samples, CRC32C: uint32(h.Version), Took: time.Duration(h.Blocked), Failed: h.Flags&failed != 0}
}

// failed in Header.Flags of Saved: the file could not be written.
const failed = 8

// Staleness is the body of Stale.
type Staleness struct {
	Server   int32
	Rule     int32 // of sync
	Versions int64 // sum of the staleness of these pushes
	Pushes   int64
	Delayed  int64 // pulls and pushes held back so far, at all shards of the server
}

// Header returns the message.
func (s *Staleness) Header() Header {
	return Header{Kind: Stale, Part: s.Server, Shard: s.Rule, Version: s.Versions, Samples: s.Pushes, Clock: s.Delayed}
}

// StalenessOf reads the body of Stale.
func StalenessOf(h *Header) Staleness {
	return Staleness{Server: h.Part, Rule: h.Shard, Versions: h.Version, Pushes: h.Samples, Delayed: h.Clock}
}

// StopAsked is the body of Halt: a request to stop.
type StopAsked struct {
	Rank     int32 // the rank that received the signal, or found the value
	Again    bool  // this is a second signal: do not wait for a checkpoint
	Diverged bool  // there was no signal: the rank has found a value that is not finite
}

// Header returns the message.
func (s StopAsked) Header() Header {
	h := Header{Kind: Halt, Worker: s.Rank}
	if s.Again {
		h.Part = stopAgain
	}
	if s.Diverged {
		h.Part = stopDiverged
	}
	return h
}

// StopAskedOf reads the body of Halt.
func StopAskedOf(h *Header) StopAsked {
	return StopAsked{Rank: h.Worker, Again: h.Part == stopAgain, Diverged: h.Part == stopDiverged}
}

// Header.Part of Halt.
const (
	stopAgain = iota + 1
	stopDiverged
)

// A snapshot of parameters is requested by an index, which stands for a number of samples; -1 is the current version.

// SnapshotAsked is the message with which a rank requests a snapshot.
func SnapshotAsked(rank int32, index int64) Header {
	return Header{Kind: Snapshot, Worker: rank, Iter: index}
}

// SnapshotKept is the message with which a server reports that it keeps a snapshot of all its shards.
func SnapshotKept(index int64) Header { return Header{Kind: Ready, Iter: index} }

// SnapshotLooked is the message with which rank 0 releases a snapshot and those before it.
func SnapshotLooked(index int64) Header { return Header{Kind: Looked, Iter: index} }

// SnapshotToEvaluate is the message with which rank 0 has another rank evaluate a snapshot.
func SnapshotToEvaluate(index int64) Header { return Header{Kind: Evaluate, Iter: index} }

// CheckpointToEvaluate is the same for the checkpoint of a number in the run folder.
func CheckpointToEvaluate(number int64) Header {
	return Header{Kind: Evaluate, Iter: number, Flags: Save}
}

// Evaluation is the result for a snapshot, or for a checkpoint.
type Evaluation struct {
	Index   int64   // of the snapshot, or the number of the checkpoint
	Loss    float64 // sum over the test rows
	Correct int64
	Took    time.Duration
	of      uint8 // Save: it is of a checkpoint
}

// ToEvaluate reads what asks for an evaluation. The numbers of its result are to be filled in.
func ToEvaluate(h *Header) Evaluation { return Evaluation{Index: h.Iter, of: h.Flags & Save} }

// OfCheckpoint says whether it is of a checkpoint.
func (e *Evaluation) OfCheckpoint() bool { return e.of != 0 }

// Header is the message of an evaluation.
func (e Evaluation) Header() Header {
	return Header{Kind: Evaluated, Iter: e.Index, Flags: e.of, Loss: e.Loss, Correct: e.Correct, Blocked: int64(e.Took)}
}

// EvaluationOf reads it.
func EvaluationOf(h *Header) Evaluation {
	return Evaluation{Index: h.Iter, of: h.Flags & Save, Loss: h.Loss, Correct: h.Correct, Took: time.Duration(h.Blocked)}
}

// SnapshotIndex returns the snapshot that one of these messages is about.
func (h *Header) SnapshotIndex() int64 { return h.Iter }

// Progress is what a reply of the lead shard tells of the run, where workers take steps of their own.
type Progress struct {
	Samples int64   // of the newest version and all before it
	Loss    float64 // mean training loss of the newest version; NaN: unknown
	Share   float64 // samples per second of the worker beside those of the fastest, at most 1
}

// WriteTo writes it to a reply.
func (p *Progress) WriteTo(h *Header) {
	h.Samples, h.Loss, h.Correct = p.Samples, p.Loss, int64(math.Float64bits(p.Share))
}

// ProgressOf reads it from a reply.
func ProgressOf(h *Header) Progress {
	return Progress{Samples: h.Samples, Loss: h.Loss, Share: math.Float64frombits(uint64(h.Correct))}
}
