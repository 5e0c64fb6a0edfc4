package reading_test

import (
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/diag"
)

// TestMany bounds what a wrong file prints.
func TestMany(t *testing.T) {
	var src strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&src, "key%d: 1\n", i)
	}
	_, _, ds := configs.Parse("many.yaml", []byte(src.String()), configs.Options{})
	if len(ds) != diag.ProblemsMax+1 || ds[len(ds)-1].Msg != "more than 200 problems" {
		t.Errorf("%d problems, the last %q", len(ds), ds[len(ds)-1].Msg)
	}
}
