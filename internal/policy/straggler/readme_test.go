package straggler

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page has a row for each kind.
func TestReadmeHasEveryKind(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), "`", "")
	for _, e := range All {
		if row := fmt.Sprintf("| %s | %s", e.Name, e.Rule); !strings.Contains(text, row) || !strings.Contains(text, " | "+e.Source+" |") {
			t.Errorf("README.md lacks %q of source %q", row, e.Source)
		}
	}
}
