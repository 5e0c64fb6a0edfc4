package verbs

import (
	"bytes"
	"errors"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/records"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/show/timeline"
	"fluentps/internal/sim"
)

// writeIterations writes iterations.csv, the same file as that of a real run.
func writeIterations(folder *metrics.RunFolder, iterations []timings.Recorder) error {
	f, err := timings.Create(folder.Folder)
	if err != nil {
		return err
	}
	for w := range iterations {
		for k := range iterations[w].Chunks() {
			if err := f.Append(iterations[w].Chunk(w, k)); err != nil {
				return errors.Join(err, f.Close(false))
			}
		}
	}
	return f.Close(true)
}

// checkTrace refuses a timeline that nobody could write.
func checkTrace(c *cli.Context, cfg *configs.Config) error {
	switch {
	case !c.Bool("trace"):
		return nil
	case !c.IsSet("out"):
		return usagef("simulate: --trace writes a file; name its folder with --out")
	case cfg.Baseline == configs.BaselineAllreduce:
		return usagef("simulate: --trace shows workers and servers, and baseline: allreduce has none; leave one of them out")
	}
	return nil
}

// writeTimeline writes the timeline, in virtual time, if there is one.
func writeTimeline(folder *metrics.RunFolder, run string, res *sim.Result) error {
	if res.Timeline == nil {
		return nil
	}
	about := make([]timeline.About, len(res.Timeline))
	for rank, role := range res.Roles {
		about[rank] = timeline.About{Role: role + ", simulated", Clock: timeline.Clock{Aligned: true}}
	}
	return folder.Replace("simulated."+timeline.Name, func(f *os.File) error {
		return timeline.Write(f, run, res.Timeline, about, `"simulated":true`)
	})
}

// file is a file that simulate writes to --out.
type file struct {
	name string
	data []byte
}

// simulatedRecords is the file of one sink. It is not named like the metrics file of a run, because its times are virtual.
func simulatedRecords(sink, run string, all []records.Record) (file, error) {
	var b bytes.Buffer
	s, name := records.JSONL(&b), "simulated."+sink
	switch sink {
	case "csv":
		s = records.CSV(&b, 0)
	case "tensorboard":
		name = "simulated." + records.EventsName(time.Unix(0, 0))
		s = records.Events(&b, time.Unix(0, 0))
	case "openmetrics":
		name = "simulated.prom"
		s = records.OpenMetrics(func(text []byte) error { b.Reset(); _, err := b.Write(text); return err }, records.Subject{Run: run})
	}
	for _, r := range all {
		if err := s.Record(r); err != nil {
			return file{}, err
		}
	}
	if err := s.Close(); err != nil { // Close writes the header even if there is no record
		return file{}, err
	}
	return file{name, b.Bytes()}, nil
}
