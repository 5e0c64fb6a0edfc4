package main

import (
	"testing"

	"fluentps/ps/scheme/schemetest"
)

func TestConformance(t *testing.T) { schemetest.Run(t, alternate) }
