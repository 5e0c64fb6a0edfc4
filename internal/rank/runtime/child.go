package runtime

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload"
	"fluentps/ps/workload/external"
)

// openChild starts the program of an external model on every rank that computes, and gives servers the values with which the parameters
// begin, unless the run resumes or has a file of them.
func (r *rank) openChild() error {
	st := r.station
	if !workload.IsExternal(st.Config.Model.Name) {
		return nil
	}
	if err := st.Net.Agree(r.startChild(), CodeFailed); err != nil {
		return err
	}
	if r.run.From != nil || st.Config.Model.Init != "" {
		return nil
	}
	return r.beginAsWorker0()
}

func (r *rank) startChild() error {
	st := r.station
	index := slices.Index(st.Roles.Computing(), st.Me)
	if index < 0 {
		return nil
	}
	c, workers := st.Config, st.Roles.Computes()
	want, err := r.programShapes()
	if err != nil {
		return err
	}
	o := external.Options{Command: c.Model.Command, Threads: c.Device.Threads, Silence: c.Stall.Peer,
		Log: func(line string) { st.Log.Info("child", "says", line) },
		Welcome: external.Welcome{Worker: index, Workers: workers, Rank: st.Me, BatchMax: c.BatchMax(workers), EvalMax: want.EvalRows(),
			Rows: st.Set.Train.Rows(), TestRows: st.Set.Test.Rows(), Accuracy: c.Data.External.Accuracy, Sampler: c.Data.Deal.Sampler,
			Seed: c.Seed, Resumed: r.run.From != nil}}
	if st.Model.Child, err = external.Start(o, want); err == nil {
		st.Log.Info("model external: " + st.Model.Child.Name() + " computes")
	}
	return err
}

// programShapes are the tensors of the program: without numbers of the optimizer, which a run may have beside each.
func (r *rank) programShapes() (*workload.Architecture, error) {
	spec := r.station.Config.ModelSpec()
	spec.States = nil
	return workload.NewArchitecture(spec, r.station.Set.Samples())
}

// values are the first values of parameters, by name.
type values struct {
	params []workload.Param
	of     map[string][]float32
}

// Fill implements workload.Initial. Numbers beside the model's parameters begin as usual.
func (v *values) Fill(dst []float32, k, lo int) error {
	given, has := v.of[v.params[k].Name]
	if !has {
		workload.Fill(dst, 0, v.params[k], lo)
		return nil
	}
	copy(dst, given[lo:lo+len(dst)])
	return nil
}

// beginAsWorker0 gives the parameters the values that they have in the program of worker 0. Those of others may differ: then a run says so,
// once.
func (r *rank) beginAsWorker0() error {
	st := r.station
	own, err := r.programShapes()
	if err != nil {
		return err
	}
	flat, err := r.ownValues()
	if err := st.Net.Agree(err, CodeFailed); err != nil {
		return err
	}
	hash := ""
	if flat != nil {
		hash = workload.HashOf(flat)
	}
	all, err := link.Gather(st.Net, hash)
	if err != nil {
		return err
	}
	computing := st.Roles.Computing()
	if st.Me == 0 {
		r.sayUnlike(all, computing)
	}
	if flat, err = r.shareValues(flat, own, computing[0]); err != nil || flat == nil {
		return err
	}
	v := &values{params: st.Model.Architecture.Params(), of: map[string][]float32{}}
	for _, p := range own.Params() {
		v.of[p.Name], flat = flat[:p.N()], flat[p.N():]
	}
	st.Model.Initial = v
	return nil
}

// ownValues are those of this rank's program; nil: it has none.
func (r *rank) ownValues() ([]float32, error) {
	c := r.station.Model.Child
	if c == nil {
		return nil, nil
	}
	flat := make([]float32, c.Shapes().Elements())
	return flat, c.Values(flat)
}

// sayUnlike warns of workers whose programs begin with other values than that of worker 0.
func (r *rank) sayUnlike(hashes []string, computing []int) {
	var unlike []string
	for i, rank := range computing {
		if hashes[rank] != hashes[computing[0]] {
			unlike = append(unlike, fmt.Sprint(i))
		}
	}
	if len(unlike) > 0 {
		r.station.Log.Warn(fmt.Sprintf("the programs of %s (%s) begin with other parameters than that of worker 0, which count: "+
			"seed them alike, as with torch.manual_seed", metrics.Count(len(unlike), "worker"), strings.Join(unlike, ", ")))
	}
}

// blobElements are the numbers sent at once.
const blobElements = 4 << 20

// shareValues sends the values of one rank to all that make parameters, and returns them there; elsewhere nil.
func (r *rank) shareValues(flat []float32, of *workload.Architecture, from int) ([]float32, error) {
	st := r.station
	to := st.Roles.Servers
	if layout.Reduces(st.Config) {
		to = st.Roles.Computing()
	}
	if st.Me == from {
		for at := 0; at < len(flat); at += blobElements {
			part := flat[at:min(len(flat), at+blobElements)]
			bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(part))), len(part)*4)
			for _, rank := range to {
				if rank == from {
					continue
				}
				if err := st.Net.SendBlob(rank, bytes); err != nil {
					return nil, err
				}
			}
		}
		return flat, nil
	}
	if !slices.Contains(to, st.Me) {
		return nil, nil
	}
	return r.receiveValues(of.Elements(), from)
}

func (r *rank) receiveValues(n, from int) ([]float32, error) {
	st := r.station
	flat := make([]float32, 0, n)
	for len(flat) < n {
		bytes, err := st.Net.RecvBlob(from)
		if err != nil {
			return nil, err
		}
		if len(bytes) == 0 || len(bytes)%4 != 0 || len(flat)+len(bytes)/4 > n {
			return nil, fmt.Errorf("rank %d sends %d bytes of values after %d of %d", from, len(bytes), len(flat)*4, n*4)
		}
		flat = append(flat, unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(bytes))), len(bytes)/4)...)
	}
	return flat, nil
}
