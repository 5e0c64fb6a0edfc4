package scheme_test

import (
	"testing"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

func TestConformance(t *testing.T) {
	for _, e := range scheme.All {
		t.Run(e.Name, func(t *testing.T) { schemetest.Run(t, e) })
	}
}
