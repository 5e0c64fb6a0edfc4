package page

import (
	"regexp"
	"strings"
	"testing"

	"fluentps/internal/show/report/plot"
)

// The style of a page leaves the figures alone: a rule for all elements of a class that shapes have changes the size of their texts.
func TestAPageDoesNotRestyleItsFigures(t *testing.T) {
	rules := regexp.MustCompile(`(?:^|[},\s])\.([a-z]+[0-9]?)\b`).FindAllStringSubmatch(head("verb", ""), -1)
	if len(rules) < 3 {
		t.Fatalf("the style has %d rules for classes: does this test find them?", len(rules))
	}
	for _, rule := range rules {
		if strings.Contains(plot.Style(), "svg.plot ."+rule[1]+"{") {
			t.Errorf("the style of the page has a rule for .%s, which shapes of figures have", rule[1])
		}
	}
}

// Only a page with pictures of its own may show pictures, and no page may load one.
func TestPagesLoadNothing(t *testing.T) {
	for _, pictures := range []bool{false, true} {
		var b strings.Builder
		if err := Parse("verb", "<body></body>", pictures).Execute(&b, map[string]any{"Title": "t", "Kind": "k", "Style": ""}); err != nil {
			t.Fatal(err)
		}
		policy := regexp.MustCompile(`content="(default-src[^"]*)"`).FindStringSubmatch(b.String())
		if policy == nil || !strings.HasPrefix(policy[1], "default-src 'none'; ") ||
			strings.Contains(policy[1], "img-src data:;") != pictures || !strings.Contains(b.String(), Mark("verb")) {
			t.Errorf("pictures %v: %s", pictures, b.String())
		}
	}
}
