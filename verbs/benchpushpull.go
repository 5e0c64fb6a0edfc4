package verbs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/configs"
	"fluentps/ps/metrics"
	ps "fluentps/ps/runtime"
	"fluentps/ps/shard"
)

func benchPushpullCommand() *cli.Command {
	return &cli.Command{
		Name:  "pushpull",
		Usage: "what a round of push, update and pull costs",
		Description: "Trains a model that computes nothing: every iteration pushes the whole size and pulls it, through all\n" +
			"that a real run goes through. First a short run, whose parameters must be initial + rounds times a known\n" +
			"step; then the one that is timed. Figures are of the slowest worker, in GB = 1e9 bytes pushed and pulled;\n" +
			"CPU seconds are of all ranks, for a GB of all workers.",
		Flags: []cli.Flag{
			localFlag(),
			&cli.IntFlag{Name: "servers", Value: 1, Usage: "`S` of the ranks serve, the rest work"},
			sizesFlag("4KiB,64KiB,1MiB,16MiB,64MiB"),
			&cli.StringFlag{Name: "scheme", Value: "bsp", Usage: "`LIST` of schemes, one after the other; their keys by --set, as in --set 'sync[0].staleness=3'"},
			&cli.StringFlag{Name: "slice", Value: "layer", Usage: "shards.slice; layer: a shard per layer, several on a server; even: one on each server; `HOW`"},
			&cli.StringFlag{Name: "shard-bytes", Value: "1MiB", Usage: "layers are as long as this, or as a server's share of the size if that is less; `SIZE`"},
			&cli.StringFlag{Name: "shared-memory", Value: "auto", Usage: "`HOW` of cluster.shared_memory, auto or off; both: each case with and without"},
			&cli.DurationFlag{Name: "time", Value: 500 * time.Millisecond, Usage: "how long each case is timed, `D`; at least 5 rounds"},
			&cli.IntFlag{Name: "rounds", Usage: "time this many rounds instead, `N`"},
			setFlag(),
			benchFormatFlag(),
		},
		Action: benchPushpullVerb,
	}
}

// What a run has beside the rounds that are timed.
const (
	warmRounds = 3 // the first rounds of every run touch memory for the first time
	roundsMin  = 5
)

// checkRounds is the length of the run whose values are checked. It also says how long a round takes, for which short
// ones need more.
func (k *pushpullCase) checkRounds() int {
	if k.bytes < 4<<20 {
		return 50
	}
	return warmRounds
}

// pushpullCase is one line of the table.
type pushpullCase struct {
	scheme string
	bytes  int64
	layers []int64 // parameters of each
	slice  string
	memory string // cluster.shared_memory
	set    []string
}

func benchPushpullVerb(c *cli.Context) error {
	sizes, err := sizesOf(c, "sizes", 4, 1<<30)
	if err != nil {
		return err
	}
	longest, err := sizesOf(c, "shard-bytes", 4, 1<<30)
	if err != nil || len(longest) != 1 {
		return usagef("bench pushpull: --shard-bytes is %q, must be one size from 4 B", c.String("shard-bytes"))
	}
	servers := c.Int("servers")
	if servers < 1 {
		return usagef("bench pushpull: --servers is %d, must be at least 1", servers)
	}
	if n := c.Int("rounds"); c.IsSet("rounds") && (n < roundsMin || n > roundsMost(1)) {
		return usagef("bench pushpull: --rounds is %d, must be %d to %d", n, roundsMin, roundsMost(1))
	}
	memories := []string{c.String("shared-memory")}
	switch memories[0] {
	case configs.SharedAuto, configs.SharedOff:
	case "both":
		memories = []string{configs.SharedAuto, configs.SharedOff}
	default:
		return usagef("bench pushpull: --shared-memory is %q, must be auto, off or both", memories[0])
	}
	var cases []pushpullCase
	for _, scheme := range strings.Split(c.String("scheme"), ",") {
		for _, n := range sizes {
			for _, memory := range memories {
				k := pushpullCase{scheme: scheme, bytes: n / 4 * 4, slice: c.String("slice"), layers: layersOf(n/4, longest[0]/4, int64(servers))}
				k.set = append([]string{fmt.Sprintf("cluster.servers=%d", servers), "cluster.shared_memory=" + memory}, c.StringSlice("set")...)
				cfg, err := k.config(1, 1) // of a world of one worker: before any rank waits for another
				if err != nil {
					return err
				}
				k.memory = cfg.Cluster.SharedMemory // --set has the last word
				cases = append(cases, k)
			}
		}
	}
	return benchWorld(c, servers+1, func(b *bench) error { return benchPushpull(b, cases) })
}

// layersOf cuts n parameters into layers of at most each, and at least one for each server, as even as can be.
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

// config is a run of so many rounds, as a user would write it.
func (k *pushpullCase) config(workers, rounds int) (*configs.Config, error) {
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
		return nil, usagef("bench pushpull: the flags make no configuration:\n%s", strings.TrimRight(b.String(), "\n"))
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
	BytesShared int64   `json:"bytes_shared"`  // read in shared memory in place of being sent
	Rounds      int     `json:"rounds"`
	RoundUSMean float64 `json:"round_us_mean"`
	RoundUSP10  float64 `json:"round_us_p10"`
	RoundUSP50  float64 `json:"round_us_p50"`
	RoundUSP99  float64 `json:"round_us_p99"`
	GBPerS      float64 `json:"gb_per_s"`     // by the mean
	GBPerSP50   float64 `json:"gb_per_s_p50"` // by the median round, which a disturbance of a few rounds leaves alone
	CPUSPerGB   float64 `json:"cpu_s_per_gb"`
	hostState
}

func benchPushpull(b *bench, cases []pushpullCase) error {
	out := b.c.App.Writer
	for i := range cases {
		if b.lead() && !b.json && (i == 0 || cases[i].scheme != cases[i-1].scheme) {
			fmt.Fprintf(out, "%-8s %10s %10s %8s %8s %11s %11s %11s %9s %9s\n", cases[i].scheme, "size", "shard", "shared", "rounds", "us mean", "us p50", "us p99", "GB/s", "CPU s/GB")
		}
		row, err := b.pushpull(&cases[i])
		if err != nil {
			return err
		}
		if !b.lead() {
			continue
		}
		if b.json {
			text, err := json.Marshal(row)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s\n", text)
			continue
		}
		fmt.Fprintf(out, "%-8s %10s %10s %8s %8d %11.1f %11.1f %11.1f %9.3f %9.3f\n", "", sizeText(row.Bytes), sizeText(row.ShardBytes), row.Memory, row.Rounds,
			row.RoundUSMean, row.RoundUSP50, row.RoundUSP99, row.GBPerS, row.CPUSPerGB)
		if i == len(cases)-1 {
			fmt.Fprintf(out, "%d servers, %d workers, %s; ", row.Servers, row.Workers, row.Mode)
			printHost(out)
		}
	}
	return nil
}

// pushpull measures one case. All ranks make the same runs; the row is rank 0's.
func (b *bench) pushpull(k *pushpullCase) (*pushpullRow, error) {
	workers, err := b.workers(k)
	if err != nil {
		return nil, err
	}
	first, err := b.train(k, workers, k.checkRounds())
	if err != nil {
		return nil, err
	}
	rounds := 0
	if b.lead() {
		if err := k.check(first); err != nil {
			return nil, err
		}
		round := slowest(first.Iterations, 1).quantile(0.5)
		if round == 0 { // a worker had none
			round = time.Duration(1e9*first.Summary.TrainS) / time.Duration(k.checkRounds())
		}
		rounds = timesFor(b.c.Duration("time"), round, roundsMin, roundsMost(workers))
		if n := b.c.Int("rounds"); n > 0 {
			rounds = n
		}
	}
	if rounds, err = b.tell(rounds); err != nil {
		return nil, err
	}
	// Where workers do not wait for each other, the run may be over when one has had few of the rounds: then once more.
	for {
		timed, err := b.train(k, workers, warmRounds+rounds)
		if err != nil {
			return nil, err
		}
		var row *pushpullRow
		if b.lead() {
			row = k.row(b, timed)
			if row.Rounds < roundsMin && rounds < roundsMost(workers) {
				rounds, row = min(2*rounds, roundsMost(workers)), nil
			} else {
				rounds = 0
			}
		}
		if rounds, err = b.tell(rounds); err != nil || rounds == 0 {
			return row, err
		}
	}
}

// workers is how many of the ranks compute.
func (b *bench) workers(k *pushpullCase) (int, error) {
	cfg, err := k.config(1, 1)
	if err != nil {
		return 0, err
	}
	roles, err := shard.Assign(make([]string, b.t.Size()), cfg.Cluster.Servers, cfg.Cluster.Placement)
	if err != nil {
		return 0, usagef("bench pushpull: %v", err)
	}
	return len(roles.Workers), nil
}

// roundsMost is how many rounds each worker's times are kept for, less the first ones.
func roundsMost(workers int) int {
	return min(metrics.IterationsOfWorkerMax, metrics.IterationsMax/workers) - warmRounds
}

// train runs so many rounds.
func (b *bench) train(k *pushpullCase, workers, rounds int) (ps.Result, error) {
	cfg, err := k.config(workers, rounds)
	if err != nil {
		return ps.Result{}, err
	}
	o := b.options(cfg)
	o.Iterations = true
	res, err := ps.Run(o)
	if err == nil && res.Code != 0 {
		err = &ps.ExitError{Code: res.Code, Text: "bench pushpull: the run did not end well"}
		if b.lead() {
			err = &ps.ExitError{Code: res.Code, Text: "bench pushpull: the run ended so: " + res.Summary.Finished}
		}
	}
	return res, err
}

// row makes the figures of the timed run. Its memory has been used before, by the run whose values were checked.
func (k *pushpullCase) row(b *bench, timed ps.Result) *pushpullRow {
	s, w := timed.Summary, slowest(timed.Iterations, warmRounds)
	r := &pushpullRow{What: "pushpull", Who: "fluentps", Mode: b.mode, Servers: s.Servers, Workers: s.Workers, Scheme: k.scheme, Bytes: k.bytes,
		Slice: k.slice, ShardBytes: 4 * slices.Max(k.layers), Memory: k.memory, BytesShared: s.BytesShared, Rounds: len(w), hostState: readHost()}
	moved := 2 * float64(k.bytes)
	micro := func(d time.Duration) float64 { return float64(d) / 1e3 }
	r.RoundUSMean = micro(w.total()) / float64(max(1, len(w)))
	r.GBPerS = 1e-3 * moved / max(r.RoundUSMean, 1e-3)
	r.RoundUSP10, r.RoundUSP50, r.RoundUSP99 = micro(w.quantile(0.1)), micro(w.quantile(0.5)), micro(w.quantile(0.99))
	r.GBPerSP50 = 1e-3 * moved / max(r.RoundUSP50, 1e-3)
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

// quantile sorts, and takes the nearest rank.
func (r rounds) quantile(q float64) time.Duration {
	if len(r) == 0 {
		return 0
	}
	slices.Sort(r)
	return r[min(len(r)-1, max(0, int(q*float64(len(r))+0.999999)-1))]
}

// slowest is the worker with the longest mean round behind the first few. A round lasts from the start of an
// iteration to that of the next, and the last one until its parameters were in.
func slowest(of [][]metrics.Iteration, skip int) rounds {
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
