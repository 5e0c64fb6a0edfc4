package main

import (
	"testing"

	"fluentps/ps/workload/modeltest"
)

func TestConformance(t *testing.T) {
	t.Run("by hand", func(t *testing.T) { modeltest.Run(t, byHand) })
	t.Run("elman", func(t *testing.T) { modeltest.Run(t, elman) })
}
