//go:build !mpi

package mpi

import (
	"errors"
	"strings"
	"testing"

	"fluentps/internal/comm"
)

func TestStubNamesTheWayOut(t *testing.T) {
	tr, err := Init(Options{})
	if tr != nil || !errors.Is(err, comm.ErrNotBuilt) || !strings.Contains(err.Error(), "make build") {
		t.Fatalf("Init: %v, %v", tr, err)
	}
	if Library() != "" {
		t.Fatalf("Library is %q", Library())
	}
}
