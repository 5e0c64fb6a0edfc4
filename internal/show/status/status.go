// Package status holds what each rank of a running job tells of itself, the words for it, and the picture of a whole run that
// `fluentps status` puts together from the files of its ranks. A rank writes its file without the help of other ranks or of MPI, so a job
// that hangs can still be looked at.
package status

import (
	"fmt"
	"strings"
	"time"

	"fluentps/internal/show/metrics"
)

// Phase is what a rank is at.
type Phase string

const (
	Setup    Phase = "sets up"
	Training Phase = "trains"
	Ending   Phase = "has trained; evaluation and saving are left"
	Ended    Phase = "has ended"
)

// Rank is what one rank tells of itself.
type Rank struct {
	Rank int    `json:"rank"`
	Role string `json:"role"` // s0, w3, s0+w3, or w3.1 of a member
	Host string `json:"host"`
	PID  int    `json:"pid"`

	Start string `json:"start"` // token of the start that the rank belongs to; "": of a version that had none

	At       time.Time `json:"at"`       // of this file, by the clock of the rank's host
	Progress time.Time `json:"progress"` // when the rank last began an iteration or made a version; zero: not yet
	EveryS   float64   `json:"every_s"`  // time between two files
	Phase    Phase     `json:"phase"`
	TrainedS float64   `json:"trained_s"`

	Worker *Worker `json:"worker,omitempty"` // nil: the rank does not compute, or has trained
	Server *Server `json:"server,omitempty"` // nil: the rank serves nothing, or has trained
	Lead   *Lead   `json:"lead,omitempty"`   // on rank 0 only
}

// Doing is what a worker does.
type Doing string

const (
	Computes Doing = "computes"
	Pushes   Doing = "pushes"
	Waits    Doing = "waits"
	IsDone   Doing = "has done its share"
)

// Worker is the working side of a rank.
type Worker struct {
	Name      string   `json:"name"`
	Iteration int64    `json:"iteration"` // the one that it computes, pushes or has pushed; -1: none
	Doing     Doing    `json:"doing"`
	ForS      float64  `json:"for_s"` // how long it has waited
	Shards    []Shard  `json:"shards,omitempty"`
	Others    []string `json:"others,omitempty"` // what it waits for beside shards
}

// Shard is a shard whose parameters a worker waits for.
type Shard struct {
	Shard  int32  `json:"shard"`
	Scheme string `json:"scheme"`
	Server int32  `json:"server"`
}

// Server is the serving side of a rank.
type Server struct {
	Name     string  `json:"name"`
	Server   int32   `json:"server"`
	Versions int64   `json:"versions"` // of all its shards
	SilentS  float64 `json:"silent_s"` // since it last heard from a worker
	Done     bool    `json:"done"`     // all workers have left
	Held     []Held  `json:"held,omitempty"`
}

// Held is a shard that holds back pulls or turns of workers.
type Held struct {
	Shard     int32   `json:"shard"`
	For       []int32 `json:"for"`       // the workers that it waits for
	Iteration int64   `json:"iteration"` // the one that these have not pushed
}

// Lead is what rank 0 knows of the whole run.
type Lead struct {
	Iteration   int64         `json:"iteration"`
	Epoch       float64       `json:"epoch"`
	Samples     int64         `json:"samples"`
	Done        float64       `json:"done"` // used share of the budget, 0 to 1; negative: there is no budget
	Loss        metrics.Float `json:"loss"`
	SamplesPerS metrics.Float `json:"samples_per_s"`
	ETAS        float64       `json:"eta_s"` // negative: not known
	Checkpoint  string        `json:"checkpoint,omitempty"`
}

// Words says in one line what the rank does, from what it knows itself.
func (r *Rank) Words() string { return r.words(nil) }

// words adds what is known of a shard's server, if of is not nil.
func (r *Rank) words(of func(server, shard int32) string) string {
	if r.Phase != Training {
		return string(r.Phase)
	}
	var all []string
	if r.Worker != nil {
		all = append(all, r.Worker.words(of))
	}
	if r.Server != nil {
		all = append(all, r.Server.words())
	}
	if len(all) == 0 {
		return string(r.Phase)
	}
	return strings.Join(all, "; ")
}

// shownMax bounds the shards and workers that one line names.
const shownMax = 3

func (w *Worker) words(of func(server, shard int32) string) string {
	if w.Doing == IsDone {
		return w.Name + " " + string(w.Doing)
	}
	if w.Doing != Waits {
		return fmt.Sprintf("%s %s iteration %d", w.Name, w.Doing, w.Iteration)
	}
	var reasons []string
	for i, s := range w.Shards {
		if i == shownMax {
			reasons = append(reasons, fmt.Sprintf("%d shards more", len(w.Shards)-i))
			break
		}
		text := fmt.Sprintf("shard %d of s%d", s.Shard, s.Server)
		if of != nil {
			text += of(s.Server, s.Shard)
		}
		reasons = append(reasons, text)
	}
	reasons = append(reasons, w.Others...)
	text := fmt.Sprintf("%s has waited %s after iteration %d", w.Name, age(seconds(w.ForS)), w.Iteration)
	if w.Iteration < 0 {
		text = fmt.Sprintf("%s has waited %s for its first parameters", w.Name, age(seconds(w.ForS)))
	}
	if len(reasons) == 0 {
		return text
	}
	return text + ": for " + strings.Join(reasons, "; for ")
}

func (s *Server) words() string {
	switch {
	case s.Done:
		return s.Name + " has served all workers"
	case len(s.Held) == 0:
		return s.Name + " has answered every pull"
	}
	var causes []string
	shards := map[string][]string{}
	for _, h := range s.Held {
		why := h.cause()
		if shards[why] == nil {
			causes = append(causes, why)
		}
		shards[why] = append(shards[why], fmt.Sprint(h.Shard))
	}
	var texts []string
	for i, why := range causes {
		if i == shownMax {
			texts = append(texts, "others")
			break
		}
		what := "shard " + shards[why][0]
		if n := len(shards[why]); n > shownMax {
			what = fmt.Sprintf("%d shards", n)
		} else if n > 1 {
			what = "shards " + listed(shards[why])
		}
		texts = append(texts, what+why)
	}
	return s.Name + " holds back pulls of " + strings.Join(texts, "; of ")
}

// cause says what the shard waits for.
func (h *Held) cause() string {
	return fmt.Sprintf(", for %s at iteration %d", workers(h.For), h.Iteration)
}

func workers(all []int32) string {
	var names []string
	for i, w := range all {
		if i == shownMax {
			names = append(names, fmt.Sprintf("%d more", len(all)-i))
			break
		}
		names = append(names, fmt.Sprintf("w%d", w))
	}
	return listed(names)
}

func listed(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// age is a duration as people say it: 0.4 s, 12 s, 3 min, 2 h 5 min.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}
