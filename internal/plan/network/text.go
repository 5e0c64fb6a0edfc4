package network

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"fluentps/internal/show/metrics"
)

// Text returns a table of the traffic of the cards in an iteration and, with rates, the bound. Cards with equal traffic share a line. Text
// returns "" if no card carries a byte.
func Text(cards []Card, rates *Rates) string {
	var order []Card
	alike := map[string]int{}
	for _, c := range cards {
		if c.Larger() > 0 {
			if alike[c.load()]++; alike[c.load()] == 1 {
				order = append(order, c)
			}
		}
	}
	if len(order) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nNetwork cards, per iteration of every worker\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  host\tout\tin")
	const shown = 8
	for i, c := range order {
		if i == shown {
			fmt.Fprintf(t, "  ... and %d other kinds of hosts\n", len(order)-shown)
			break
		}
		name := c.Host
		if n := alike[c.load()]; n > 1 {
			name = fmt.Sprintf("%s and %d more", name, n-1)
		}
		fmt.Fprintf(t, "  %s\t%s\n", name, c.load())
	}
	_ = t.Flush() // a strings.Builder never fails
	if rates == nil {
		return b.String()
	}
	bound := Least(cards, *rates)
	way := "out of"
	if bound.Card.In > bound.Card.Out {
		way = "into"
	}
	fmt.Fprintf(&b, "  limit: at least %s an iteration: %s %s %s at %s, of which %.2f is left beside headers\n",
		bound.Time.Round(max(time.Microsecond, bound.Time/1000)), metrics.Size(bound.Card.Larger()), way, bound.Card.Host,
		FormatRate(bound.Rate), Goodput)
	return b.String()
}

// load returns the traffic of a card, out and in, as two columns.
func (c Card) load() string { return metrics.Size(c.Out) + "\t" + metrics.Size(c.In) }
