package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	ps "fluentps/internal/rank/runtime"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics/timings"
)

// Numbers of rounds.
const (
	warmRounds = 3 // rounds before the timed ones, which touch memory for the first time
	RoundsMin  = 5 // the fewest timed rounds
)

// checkRounds returns the rounds of the run whose values are checked. That run also measures the time of a round, for which short rounds
// need more of them.
func (k *Case) checkRounds() int {
	if k.bytes < 4<<20 {
		return 50
	}
	return warmRounds
}

// Table selects the cases of Pushpull: each scheme with each size and each kind of memory.
type Table struct {
	Schemes    []string
	Sizes      []int64  // bytes of the parameters
	ShardBytes int64    // the longest layer
	Memories   []string // values of cluster.shared_memory
	Servers    int
	Slice      string   // shards.slice
	Set        []string // settings as for --set; they override all others
}

// Cases lists the cases. It fails if a configuration is invalid.
func (t *Table) Cases() (cases []Case, err error) {
	for _, scheme := range t.Schemes {
		for _, n := range t.Sizes {
			for _, memory := range t.Memories {
				k := Case{scheme: scheme, bytes: n / 4 * 4, slice: t.Slice, layers: layersOf(n/4, t.ShardBytes/4, int64(t.Servers))}
				k.set = append([]string{fmt.Sprintf("cluster.servers=%d", t.Servers), "cluster.shared_memory=" + memory}, t.Set...)
				cfg, err := k.config(1, 1) // for one worker: finds mistakes before any rank waits for another
				if err != nil {
					return nil, err
				}
				k.memory, k.servers, k.colocated = cfg.Cluster.SharedMemory, cfg.Cluster.Servers, cfg.Cluster.Placement == "colocate"
				cases = append(cases, k)
			}
		}
	}
	return cases, nil
}

// RanksMin is the number of ranks that the cases need at least.
func RanksMin(cases []Case) (ranks int) {
	for _, k := range cases {
		least := k.servers + 1
		if k.colocated {
			least = k.servers
		}
		ranks = max(ranks, least)
	}
	return ranks
}

// Case is one line of the table.
type Case struct {
	scheme string
	bytes  int64
	layers []int64 // parameters of each layer
	slice  string
	memory string // cluster.shared_memory
	set    []string

	servers   int
	colocated bool // all ranks work
}

// layersOf cuts n parameters into layers of at most each parameters, at least one for each server, as evenly as possible.
func layersOf(n, each, servers int64) []int64 {
	k := min(n, max((n+each-1)/each, servers))
	layers := make([]int64, k)
	for i := range layers {
		layers[i] = n / k
		if int64(i) < n%k {
			layers[i]++
		}
	}
	return layers
}

// config returns the configuration of a run with that many rounds.
func (k *Case) config(workers, rounds int) (*configs.Config, error) {
	text := fmt.Sprintf(`name: bench
cluster: {servers: 1, memory_max: 1024GiB}
data: {set: generated, rows: %d, test_rows: 1, features: 1, classes: 2}
model: {name: synthetic, layers: [%s], compute: 0s}
train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 1}, stop: {samples: %d}}
evaluate: {every_epochs: 0}
shards: {slice: %s}
sync: [{match: "*", scheme: %s}]
`, max(64, workers), strings.Trim(fmt.Sprint(commas(k.layers)), "[]"), workers*rounds, k.slice, k.scheme)
	cfg, _, diags := configs.Parse("bench pushpull", []byte(text), configs.Options{Set: k.set})
	if diags.Failed() {
		var b strings.Builder
		_ = diags.Write(&b) // a strings.Builder never fails
		return nil, station.Usage("bench pushpull: the flags make an invalid configuration:\n%s", strings.TrimRight(b.String(), "\n"))
	}
	return cfg, nil
}

func commas(list []int64) string { return strings.ReplaceAll(fmt.Sprint(list), " ", ", ") }

// pushpullRow is one case of bench pushpull.
type pushpullRow struct {
	What        string  `json:"what"` // pushpull
	Who         string  `json:"who"`  // fluentps
	Mode        string  `json:"mode"`
	Servers     int     `json:"servers"`
	Workers     int     `json:"workers"`
	Scheme      string  `json:"scheme"`
	Bytes       int64   `json:"bytes"`
	Slice       string  `json:"slice"`
	ShardBytes  int64   `json:"shard_bytes"`   // of the longest layer
	Memory      string  `json:"shared_memory"` // cluster.shared_memory
	BytesShared int64   `json:"bytes_shared"`  // read in shared memory instead of sent
	Rounds      int     `json:"rounds"`
	RoundUSMean float64 `json:"round_us_mean"`
	RoundUSP10  float64 `json:"round_us_p10"`
	RoundUSP50  float64 `json:"round_us_p50"`
	RoundUSP99  float64 `json:"round_us_p99"`
	GBPerS      float64 `json:"gb_per_s"`     // by the mean
	GBPerSP50   float64 `json:"gb_per_s_p50"` // by the median round, which a few disturbed rounds do not change
	CPUSPerGB   float64 `json:"cpu_s_per_gb"`
	LimitUS     float64 `json:"limit_us,omitempty"`    // with cluster.link: the least time of a round (internal/plan/network)
	LimitShare  float64 `json:"limit_share,omitempty"` // of limit_us in round_us_mean
	hostState
}

// Pushpull measures the cases one after the other, each for the time total, or for fixed rounds if fixed is not 0.
func (r *Rank) Pushpull(cases []Case, total time.Duration, fixed int) error {
	out := r.Out
	for i := range cases {
		if r.Lead() && !r.JSON && (i == 0 || cases[i].scheme != cases[i-1].scheme) {
			fmt.Fprintf(out, "%-8s %10s %10s %8s %8s %11s %11s %11s %9s %9s %8s\n", cases[i].scheme, "size", "shard", "shared",
				"rounds", "us mean", "us p50", "us p99", "GB/s", "CPU s/GB", "of limit")
		}
		row, err := r.pushpull(&cases[i], total, fixed)
		if err != nil {
			return err
		}
		if !r.Lead() {
			continue
		}
		if r.JSON {
			if err := writeJSON(out, row); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(out, "%-8s %10s %10s %8s %8d %11.1f %11.1f %11.1f %9.3f %9.3f %8s\n", "", configs.FormatSize(row.Bytes),
			configs.FormatSize(row.ShardBytes), row.Memory, row.Rounds,
			row.RoundUSMean, row.RoundUSP50, row.RoundUSP99, row.GBPerS, row.CPUSPerGB, row.share())
		if i == len(cases)-1 {
			fmt.Fprintf(out, "%d servers, %d workers, %s; ", row.Servers, row.Workers, row.Mode)
			printHost(out)
		}
	}
	return nil
}

// pushpull measures one case. All ranks make the same runs. Only rank 0 returns a row.
func (r *Rank) pushpull(k *Case, total time.Duration, fixed int) (*pushpullRow, error) {
	workers, err := r.workers(k)
	if err != nil {
		return nil, err
	}
	first, err := r.train(k, workers, k.checkRounds())
	if err != nil {
		return nil, err
	}
	rounds := 0
	if r.Lead() {
		if err := k.check(first); err != nil {
			return nil, err
		}
		round := slowest(first.Iterations, 1).quantile(0.5)
		if round == 0 { // a worker had no round after the first
			round = time.Duration(1e9*first.Summary.TrainS) / time.Duration(k.checkRounds())
		}
		rounds = timesFor(total, round, RoundsMin, RoundsMost(workers))
		if fixed > 0 {
			rounds = fixed
		}
	}
	if rounds, err = r.tell(rounds); err != nil {
		return nil, err
	}
	// If workers do not wait for each other, the run may end while one of them has had few rounds. Then a longer run follows.
	for {
		timed, err := r.train(k, workers, warmRounds+rounds)
		if err != nil {
			return nil, err
		}
		var row *pushpullRow
		if r.Lead() {
			row = k.row(r, timed)
			if row.Rounds < RoundsMin && rounds < RoundsMost(workers) {
				rounds, row = min(2*rounds, RoundsMost(workers)), nil
			} else {
				rounds = 0
			}
		}
		if rounds, err = r.tell(rounds); err != nil || rounds == 0 {
			return row, err
		}
	}
}

// share returns the share of the limit as text, or - if no limit is known.
func (r *pushpullRow) share() string {
	if r.LimitUS == 0 {
		return "-"
	}
	return strconv.FormatFloat(r.LimitShare, 'f', 2, 64)
}

// workers returns how many ranks compute.
func (r *Rank) workers(k *Case) (int, error) {
	cfg, err := k.config(1, 1)
	if err != nil {
		return 0, err
	}
	roles, err := shard.Assign(make([]string, r.Transport.Size()), cfg.Cluster.Servers, cfg.Cluster.Placement)
	if err != nil {
		return 0, station.Usage("bench pushpull: %v", err)
	}
	return len(roles.Workers), nil
}

// RoundsMost returns the most timed rounds: a run keeps the times of that many rounds of each worker, besides the first ones.
func RoundsMost(workers int) int {
	return min(timings.RowsOfWorkerMax, timings.RowsMax/workers) - warmRounds
}

// train runs that many rounds.
func (r *Rank) train(k *Case, workers, rounds int) (ps.Result, error) {
	cfg, err := k.config(workers, rounds)
	if err != nil {
		return ps.Result{}, err
	}
	o := r.options(cfg)
	o.Iterations = true
	res, err := ps.Run(o)
	if err == nil && res.Code != 0 {
		err = &ps.ExitError{Code: res.Code, Text: "bench pushpull: the run failed"}
		if r.Lead() {
			err = &ps.ExitError{Code: res.Code, Text: "bench pushpull: the run failed: " + res.Summary.Finished}
		}
	}
	return res, err
}

// row computes the figures of the timed run.
func (k *Case) row(rank *Rank, timed ps.Result) *pushpullRow {
	s, w := timed.Summary, slowest(timed.Iterations, warmRounds)
	r := &pushpullRow{What: "pushpull", Who: "fluentps", Mode: rank.Mode, Servers: s.Servers, Workers: s.Workers,
		Scheme: k.scheme, Bytes: k.bytes,
		Slice: k.slice, ShardBytes: 4 * slices.Max(k.layers), Memory: k.memory, BytesShared: s.BytesShared, Rounds: len(w), hostState: readHost()}
	moved := 2 * float64(k.bytes)
	micro := func(d time.Duration) float64 { return float64(d) / 1e3 }
	r.RoundUSMean = micro(w.total()) / float64(max(1, len(w)))
	r.GBPerS = 1e-3 * moved / max(r.RoundUSMean, 1e-3)
	r.RoundUSP10, r.RoundUSP50, r.RoundUSP99 = micro(w.quantile(0.1)), micro(w.quantile(0.5)), micro(w.quantile(0.99))
	r.GBPerSP50 = 1e-3 * moved / max(r.RoundUSP50, 1e-3)
	if s.Wire != nil {
		r.LimitUS = 1e6 * float64(s.Wire.LimitS)
		r.LimitShare = r.LimitUS / max(r.RoundUSMean, 1e-3)
	}
	var iterations int64
	for _, w := range s.PerWorker {
		iterations += w.Iterations
	}
	r.CPUSPerGB = 1e9 * float64(*s.CPUS) / (moved * float64(iterations))
	return r
}

// rounds are the times of a worker's rounds.
type rounds []time.Duration

func (r rounds) total() (sum time.Duration) {
	for _, d := range r {
		sum += d
	}
	return sum
}

// quantile sorts the rounds, and returns the quantile by nearest rank.
func (r rounds) quantile(q float64) time.Duration {
	if len(r) == 0 {
		return 0
	}
	slices.Sort(r)
	return r[min(len(r)-1, max(0, int(q*float64(len(r))+0.999999)-1))]
}

// slowest returns the rounds of the worker with the longest mean round, without the first skip rounds. A round lasts from the start of an
// iteration to the start of the next. The last round lasts until its parameters have arrived. slowest returns nil if a worker has no round.
func slowest(of [][]timings.Iteration, skip int) rounds {
	var worst rounds
	for _, all := range of {
		var r rounds
		for i := skip; i < len(all); i++ {
			end := all[i].End() + all[i].Blocked + all[i].Pull
			if i+1 < len(all) {
				end = all[i+1].Start
			}
			r = append(r, end-all[i].Start)
		}
		if worst == nil || len(r) == 0 || float64(r.total())/float64(len(r)) > float64(worst.total())/float64(len(worst)) {
			worst = r
		}
		if len(r) == 0 {
			return nil
		}
	}
	return worst
}
