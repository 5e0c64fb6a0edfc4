package kernels

import (
	"slices"
	"strings"
	"testing"
)

func TestHostMemory(t *testing.T) {
	var m HostMemory
	v := Vec{Host: []float32{1, 2, 3}}
	if err := m.Upload(v, []float32{7, 8}); err != nil || !slices.Equal(v.Host, []float32{7, 8, 3}) {
		t.Errorf("upload: %v, %v; want 7 8 3", v.Host, err)
	}
	got := make([]float32, 2)
	if err := m.Download(got, v); err != nil || !slices.Equal(got, []float32{7, 8}) {
		t.Errorf("download: %v, %v; want 7 8", got, err)
	}
	if err := m.Upload(v, make([]float32, 4)); err == nil || !strings.Contains(err.Error(), "upload of 4 elements into a vector of 3") {
		t.Errorf("upload of too much: %v", err)
	}
	if err := m.Download(make([]float32, 4), v); err == nil || !strings.Contains(err.Error(), "download of 4 elements from a vector of 3") {
		t.Errorf("download of too much: %v", err)
	}
	if e, err := m.Fetch(v); err != nil || !e.Passed() || e.Wait() != nil {
		t.Errorf("fetch: %v, %v; want an event that has passed", e, err)
	}
}
