package work

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page has a row for each policy.
func TestReadmeHasEveryPolicy(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), "`", "")
	for _, e := range All {
		if row := fmt.Sprintf("| %s | %s | %s |", e.Name, e.Rule, e.Source); !strings.Contains(text, row) {
			t.Errorf("README.md lacks %q", row)
		}
	}
}
