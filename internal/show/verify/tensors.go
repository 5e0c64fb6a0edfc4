package verify

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/metrics"
)

// shownTensors bounds the parameters that a line names.
const shownTensors = 4

// compareCheckpoints compares the checkpoints that both runs made after the same samples and iterations, the first
// ones first, until some differ.
func (r *Report) compareCheckpoints(a, b *run) {
	var common []point
	for p := range a.checkpoints {
		if _, there := b.checkpoints[p]; there {
			common = append(common, p)
		}
	}
	if len(common) == 0 {
		r.say("checkpoints: none of the first run's %d was made after as many samples and iterations as one of the "+
			"second run's %d", len(a.checkpoints), len(b.checkpoints))
		return
	}
	slices.SortFunc(common, func(x, y point) int {
		return cmp.Or(cmp.Compare(x.samples, y.samples), cmp.Compare(x.iteration, y.iteration))
	})
	compared, last := 0, int64(0)
	for _, p := range common {
		differ, err := compareTensors(a.checkpoints[p], b.checkpoints[p])
		if err != nil {
			r.damaged(err)
			continue
		}
		compared++
		if len(differ) == 0 {
			last = p.iteration
			continue
		}
		r.Differ = true
		if n := len(differ); n > shownTensors {
			differ = append(differ[:shownTensors], metrics.Count(n-shownTensors, "parameter")+" more")
		}
		r.say("checkpoints: DIFFER first at iteration %d, %s and %s: %s%s", p.iteration, filepath.Base(a.checkpoints[p]),
			filepath.Base(b.checkpoints[p]), strings.Join(differ, ", "), before(compared > 1))
		r.Compared += compared
		return
	}
	if r.Compared += compared; compared > 0 {
		r.say("checkpoints: equal, %s that both runs have, the last one at iteration %d", metrics.Count(compared, "checkpoint"), last)
	}
}

// compareTensors lists the parameters and optimizer state that differ between two checkpoints, by how many values and by how much at most.
func compareTensors(a, b string) (differ []string, err error) {
	x, err := checkpoint.OpenTensors(a)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	y, err := checkpoint.OpenTensors(b)
	if err != nil {
		return nil, err
	}
	defer y.Close()
	mine, theirs := slices.Concat(x.Manifest.Parameters, x.Manifest.Optimizer), slices.Concat(y.Manifest.Parameters, y.Manifest.Optimizer)
	for i := range mine {
		t := &mine[i]
		k := slices.IndexFunc(theirs, func(o checkpoint.Tensor) bool { return o.Name == t.Name })
		if k < 0 || !slices.Equal(theirs[k].Shape, t.Shape) {
			differ = append(differ, fmt.Sprintf("%s (only in the first run, with the shape %v)", foreign.Text(t.Name), t.Shape))
			continue
		}
		text, err := compareValues(x.Reader(t), y.Reader(&theirs[k]))
		if err != nil {
			return nil, err
		}
		if text != "" {
			differ = append(differ, foreign.Text(t.Name)+" ("+text+")")
		}
	}
	for i := range theirs {
		if !slices.ContainsFunc(mine, func(o checkpoint.Tensor) bool { return o.Name == theirs[i].Name }) {
			differ = append(differ, fmt.Sprintf("%s (only in the second run)", foreign.Text(theirs[i].Name)))
		}
	}
	return differ, nil
}

// compareValues says how many values differ in their bits, and the largest difference; "" if none.
func compareValues(a, b io.Reader) (string, error) {
	a, b = bufio.NewReaderSize(a, 1<<16), bufio.NewReaderSize(b, 1<<16)
	var x, y [4]byte
	count, all, most := int64(0), int64(0), 0.0
	for ; ; all++ {
		_, err := io.ReadFull(a, x[:])
		if err == io.EOF {
			break
		}
		if err == nil {
			_, err = io.ReadFull(b, y[:])
		}
		if err != nil {
			return "", err
		}
		if x == y {
			continue
		}
		count++
		p, q := float64(math.Float32frombits(binary.LittleEndian.Uint32(x[:]))), float64(math.Float32frombits(binary.LittleEndian.Uint32(y[:])))
		if d := math.Abs(p - q); d > most || math.IsNaN(d) {
			most = d
		}
	}
	if count == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d of %d values, by %.3g at most", count, all, most), nil
}
