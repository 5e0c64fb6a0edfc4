// Command table makes tables of ratios from the JSON lines of `fluentps bench` and of the references in C. It reads the lines in the
// order in which they were measured. A figure is the median over launches. A ratio is the median of the ratios of consecutive
// launches, each with the better variant of the reference.
//
//	table [-tsv] < lines
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// line is the result of one program for one case.
type line struct {
	What       string  `json:"what"`
	Who        string  `json:"who"`
	Servers    int     `json:"servers"`
	Workers    int     `json:"workers"`
	Scheme     string  `json:"scheme"`
	Bytes      int64   `json:"bytes"`
	ChunkBytes int64   `json:"chunk_bytes"`
	Memory     string  `json:"shared_memory"` // of ours: auto, off
	GBPerS     float64 `json:"gb_per_s"`
	RoundUS    float64 `json:"round_us_p50"`
	CPUSPerGB  float64 `json:"cpu_s_per_gb"`
	LatencyUS  float64 `json:"latency_us"`
	BothGBPerS float64 `json:"both_gb_per_s"`
	Cores      int     `json:"cores"`
	Load       float64 `json:"load"`
}

func main() {
	tsv := flag.Bool("tsv", false, "columns by tabs, with names in the first row, for scripts")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *tsv); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, tsv bool) error {
	var lines []line
	scan := bufio.NewScanner(in)
	for scan.Scan() {
		if strings.TrimSpace(scan.Text()) == "" {
			continue
		}
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			return fmt.Errorf("%q: %w", scan.Text(), err)
		}
		lines = append(lines, l)
	}
	if err := scan.Err(); err != nil {
		return err
	}
	if len(lines) == 0 {
		return fmt.Errorf("the input has no lines")
	}
	for _, rows := range [][][]string{pushpull(lines), latency(lines)} {
		if len(rows) > 1 {
			write(out, rows, tsv)
		}
	}
	if !tsv {
		var loads []float64
		for _, l := range lines {
			loads = append(loads, l.Load)
		}
		fmt.Fprintf(out, "%d cores; load average %.1f (median over the lines)\n", lines[0].Cores, median(loads))
	}
	return nil
}

// key identifies a case that is compared.
type key struct {
	servers, workers int
	scheme           string
	bytes            int64
	memory           string // of ours
}

func (k key) cells() []string {
	return []string{fmt.Sprintf("%d+%d", k.servers, k.workers), k.scheme, fmt.Sprint(k.bytes), k.memory}
}

// collect groups the lines of one kind by case, in the order of our lines: ours, and those of C by variant.
func collect(lines []line, what string) (keys []key, ours map[key][]line, c map[key]map[int64][]line) {
	ours, c = map[key][]line{}, map[key]map[int64][]line{}
	for _, l := range lines {
		if l.What != what {
			continue
		}
		k := key{l.Servers, l.Workers, l.Scheme, l.Bytes, l.Memory}
		if l.Who == "c" {
			if c[k] == nil {
				c[k] = map[int64][]line{}
			}
			c[k][l.ChunkBytes] = append(c[k][l.ChunkBytes], l)
			continue
		}
		if ours[k] == nil {
			keys = append(keys, k)
		}
		ours[k] = append(ours[k], l)
	}
	return keys, ours, c
}

// ofC is the same case as the key of the program in C.
func (k key) ofC() key {
	k.memory = ""
	return k
}

func pushpull(lines []line) [][]string {
	rows := [][]string{{"servers+workers", "scheme", "bytes", "shared_memory", "launches", "gb_per_s", "c_whole",
		"c_chunks", "ratio", "round_us_p50", "c_round_us_p50", "cpu_s_per_gb", "c_cpu_s_per_gb", "cpu_ratio"}}
	keys, ours, c := collect(lines, "pushpull")
	speed := func(l line) float64 { return l.GBPerS }
	round := func(l line) float64 { return l.RoundUS }
	cpu := func(l line) float64 { return l.CPUSPerGB }
	for _, k := range keys {
		ref := c[k.ofC()]
		best := better(ref)
		rows = append(rows, append(k.cells(), fmt.Sprint(len(ours[k])), figure(over(ours[k], speed)),
			figure(over(ref[0], speed)), figure(over(chunked(ref), speed)),
			figure(ratio(ours[k], best, speed)), figure(over(ours[k], round)), figure(over(best, round)),
			figure(over(ours[k], cpu)), figure(over(best, cpu)), figure(ratio(ours[k], best, cpu))))
	}
	return rows
}

func latency(lines []line) [][]string {
	rows := [][]string{{"bytes", "launches", "latency_us", "c_latency_us", "more_us", "stream_gb_per_s",
		"c_stream_gb_per_s", "both_gb_per_s", "c_both_gb_per_s"}}
	keys, ours, c := collect(lines, "comm")
	half := func(l line) float64 { return l.LatencyUS }
	stream := func(l line) float64 { return l.GBPerS }
	both := func(l line) float64 { return l.BothGBPerS }
	for _, k := range keys {
		mine, ref := ours[k], c[k.ofC()][0]
		var more []float64
		for i := range min(len(mine), len(ref)) {
			more = append(more, mine[i].LatencyUS-ref[i].LatencyUS)
		}
		rows = append(rows, []string{fmt.Sprint(k.bytes), fmt.Sprint(len(mine)), figure(over(mine, half)),
			figure(over(ref, half)), figure(median(more)),
			figure(over(mine, stream)), figure(over(ref, stream)), figure(over(mine, both)), figure(over(ref, both))})
	}
	return rows
}

// chunked returns the lines of the variant that cuts slices.
func chunked(of map[int64][]line) []line {
	for chunk, lines := range of {
		if chunk > 0 {
			return lines
		}
	}
	return nil
}

// better returns the lines of the variant with the higher median.
func better(of map[int64][]line) []line {
	speed := func(l line) float64 { return l.GBPerS }
	whole, cut := of[0], chunked(of)
	if len(whole) == 0 || len(cut) > 0 && over(cut, speed) > over(whole, speed) {
		return cut
	}
	return whole
}

func over(lines []line, of func(line) float64) float64 {
	var values []float64
	for _, l := range lines {
		values = append(values, of(l))
	}
	return median(values)
}

// ratio is the median over pairs of launches.
func ratio(a, b []line, of func(line) float64) float64 {
	var values []float64
	for i := range min(len(a), len(b)) {
		if of(b[i]) > 0 {
			values = append(values, of(a[i])/of(b[i]))
		}
	}
	return median(values)
}

// median is NaN without values. With an even number of values it is the mean of the two in the middle.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}

func figure(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func write(out io.Writer, rows [][]string, tsv bool) {
	for i, row := range rows {
		if tsv {
			fmt.Fprintln(out, strings.Join(row, "\t"))
			continue
		}
		fmt.Fprintln(out, "| "+strings.Join(row, " | ")+" |")
		if i == 0 {
			fmt.Fprintln(out, "|"+strings.Repeat(" --- |", len(row)))
		}
	}
	if !tsv {
		fmt.Fprintln(out)
	}
}
