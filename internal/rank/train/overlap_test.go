package train_test

import (
	"sync/atomic"
	"testing"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station/stationtest"
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
	late  *atomic.Bool // nothing has released a send
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
			h.late.Store(true)
		}
		h.Post(func() { h.Transport.Isend(to, ch, tag, b, off, n, done) })
	}()
	return 0
}

// beforeTheThirdProduct calls a function before the third product of activations and weights: of two layers, that is the first
// of iteration 1.
func beforeTheThirdProduct(call func()) kernels.Device {
	products := 0
	return watched{cpu.New(1), func(k *kernels.Kernel) {
		if k != kernels.GemmNT {
			return
		}
		if products++; products == 3 {
			call()
		}
	}}
}

// secondReplyWaits holds the second reply with the parameters of layer 1 back until started is closed.
func secondReplyWaits(tr comm.Transport, started <-chan struct{}) (held delayingSend, replies *int) {
	replies = new(int)
	return delayingSend{tr, func(ch comm.Chan, tag uint32) <-chan struct{} {
		if ch != comm.Data || tag != link.TagReply|1 {
			return nil
		}
		if *replies++; *replies != 2 {
			return nil
		}
		return started
	}, new(atomic.Bool)}, replies
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
			startsEarly(t, cfg, stationtest.OneHost(c.ranks), c.ranks-1)
		})
	}
}

// startsEarly trains 3 iterations of two layers, with a server on rank 0, and checks that a rank starts forward on layer 0 while the
// parameters of layer 1 are delayed.
func startsEarly(t *testing.T, c *configs.Config, hosts string, starts int) {
	t.Helper()
	started := make(chan struct{})
	ts := stationtest.Transports(hosts)
	held, replies := secondReplyWaits(ts[0], started)
	ts[0] = held
	// one frame would carry the parameters of both layers
	got := sidestest.Train(t, c, len(ts), sidestest.Options{Hosts: hosts, Transports: ts, Thresholds: layout.Thresholds{Inline: -1},
		Device: func(rank int) kernels.Device {
			if rank != starts {
				return cpu.New(1)
			}
			return beforeTheThirdProduct(func() { close(started) })
		}})
	if *replies != 4 || got.Workers[0].Iterations != 3 {
		t.Errorf("%d replies, %d iterations", *replies, got.Workers[0].Iterations)
	}
	if held.late.Load() {
		t.Error("forward did not start on layer 0 before the parameters of layer 1 were there")
	}
}

// A member starts forward on layer 0 while its leader waits for the parameters of layer 1, which leave the server only
// after the member has launched the first kernel of the iteration.
func TestAMemberStartsForwardBeforeAllParametersAreThere(t *testing.T) {
	cfg := load(t, "cluster={servers: 1, hierarchy: node}", "model={name: mlp, layers: [6]}", "shards.slice=layer",
		"train.stop={updates: 3}", "evaluate.every_epochs=0")
	startsEarly(t, cfg, "abb", 2)
}

// A worker receives messages while it computes: a kernel that waits for one ends.
func TestMessagesMoveWhileAWorkerComputes(t *testing.T) {
	waited := 0
	ts := stationtest.Transports("aa")
	sidestest.Train(t, load(t, "cluster.servers=1", "train.stop={updates: 2}"), 2, sidestest.Options{Transports: ts,
		Device: func(rank int) kernels.Device {
			return watched{cpu.New(1), func(k *kernels.Kernel) {
				if k != kernels.GemmTN || waited > 0 {
					return
				}
				waited++
				ran := make(chan struct{})
				ts[rank].Post(func() { close(ran) })
				select {
				case <-ran:
				case <-time.After(waitMax):
					t.Error("no tick while the worker computed")
				}
			}}
		}})
	if waited != 1 {
		t.Errorf("%d kernels waited", waited)
	}
}
