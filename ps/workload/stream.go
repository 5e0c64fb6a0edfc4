package workload

import (
	"fmt"

	"fluentps/kernels"
)

// stream is a device that does nothing more once a call has failed: all that follows would compute on values that were never written. So
// a stage need not look at every launch, and who asks at the end of a pass hears of the first failure.
type stream struct {
	kernels.Device
	err error // of the first call that failed; it stays
}

// see keeps the first error; what names the call.
func (s *stream) see(what string, err error) {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("%s: %w", what, err)
	}
}

func (s *stream) launch(k *kernels.Kernel, a kernels.Args) {
	if s.err != nil {
		return
	}
	if err := s.Launch(k, a); err != nil {
		s.see("kernel "+k.Name, err)
	}
}

func (s *stream) refresh(v kernels.Vec) {
	if s.err == nil {
		s.see("copy to the device", s.Refresh(v))
	}
}

func (s *stream) download(to []float32, v kernels.Vec) {
	if s.err == nil {
		s.see("copy to the host", s.Download(to, v))
	}
}

// fetch appends the event of a copy to the host.
func (s *stream) fetch(events []kernels.Event, v kernels.Vec) []kernels.Event {
	if s.err != nil {
		return events
	}
	e, err := s.Fetch(v)
	if err != nil {
		s.see("copy to the host", err)
		return events
	}
	return append(events, e)
}

// wrap is Wrap. After a failure the vector is of the right length, and no use.
func (s *stream) wrap(p []float32) kernels.Vec {
	v, err := s.Wrap(p)
	if err != nil {
		s.see("memory of the host for the device", err)
		return kernels.Vec{Host: p}
	}
	return v
}
