package runtime

import (
	"errors"
	"testing"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/rank/link"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// waitMax is how long a test waits for an event before it fails.
const waitMax = 20 * time.Second

// watched calls a function before each kernel is launched.
type watched struct {
	kernels.Device
	launch func(k *kernels.Kernel)
}

func (d watched) Launch(k *kernels.Kernel, a kernels.Args) error {
	d.launch(k)
	return d.Device.Launch(k, a)
}

// delayingSend delays a send until it is released.
type delayingSend struct {
	comm.Transport
	holds func(ch comm.Chan, tag uint32) (until <-chan struct{})
}

func (h delayingSend) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, done comm.Handler) comm.Op {
	until := h.holds(ch, tag)
	if until == nil {
		return h.Transport.Isend(to, ch, tag, b, off, n, done)
	}
	go func() {
		select {
		case <-until:
		case <-time.After(waitMax):
		}
		h.Post(func() { h.Transport.Isend(to, ch, tag, b, off, n, done) })
	}()
	return 0
}

// Forward starts on layer 0 while the parameters of layer 1 are delayed: those of iteration 1 leave the server only after
// the first kernel of that iteration was launched. A rank that also serves does the same on its second goroutine.
func TestForwardStartsBeforeAllParametersAreThere(t *testing.T) {
	for _, c := range []struct {
		placement string
		ranks     int
	}{{"spread", 2}, {"colocate", 1}} {
		t.Run(c.placement, func(t *testing.T) {
			cfg := load(t, "cluster={servers: 1, placement: "+c.placement+"}", "model={name: mlp, layers: [6]}",
				"shards.slice=layer", "train.stop={updates: 3}", "evaluate.every_epochs=0")
			started := make(chan struct{})
			ts := inproc.New(c.ranks, inproc.Options{})
			replies := 0
			ts[0] = delayingSend{ts[0], func(ch comm.Chan, tag uint32) <-chan struct{} {
				if ch != comm.Data || tag != link.TagReply|1 {
					return nil
				}
				if replies++; replies != 2 {
					return nil
				}
				return started
			}}
			res, errs := runOver(t, ts, cfg, func(o *Options) {
				o.thresholds.Inline = -1 // one frame would carry the parameters of both layers
				products := 0
				o.NewDevice = func() (kernels.Device, error) {
					return watched{cpu.New(1), func(k *kernels.Kernel) {
						if k != kernels.GemmNT {
							return
						}
						if products++; products == 3 { // two layers in iteration 0
							close(started)
						}
					}}, nil
				}
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if replies != 4 || res[0].Summary.Iterations != 3 {
				t.Errorf("%d replies, %+v", replies, res[0].Summary)
			}
			if float64(res[0].Summary.TrainS) >= waitMax.Seconds() {
				t.Error("forward did not start on layer 0 before the parameters of layer 1 were there")
			}
		})
	}
}

// A worker receives messages while it computes: a kernel that waits for one ends.
func TestMessagesMoveWhileAWorkerComputes(t *testing.T) {
	waited := 0
	_, errs := world(t, load(t, "cluster.servers=1", "train.stop={updates: 2}", "evaluate.every_epochs=0"), 2, func(o *Options) {
		if o.Transport.Rank() == 0 {
			return
		}
		o.NewDevice = func() (kernels.Device, error) {
			return watched{cpu.New(1), func(k *kernels.Kernel) {
				if k != kernels.GemmTN || waited > 0 {
					return
				}
				waited++
				ran := make(chan struct{})
				o.Transport.Post(func() { close(ran) })
				select {
				case <-ran:
				case <-time.After(waitMax):
					t.Error("no tick while the worker computed")
				}
			}}, nil
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if waited != 1 {
		t.Errorf("%d kernels waited", waited)
	}
}
