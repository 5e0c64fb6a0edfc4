// Package gpucheck runs the checks that need a GPU, one after the other, and prints a row for each outcome as soon as it is known.
//
// Every check is a process of its own (Program). So a kernel that hangs, a context that is broken or a crash costs its own check
// only, and a check whose budget is spent can be ended. The checks themselves are in package check.
package gpucheck

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Outcome is what a row says of its check.
type Outcome string

// The outcomes. A row that is skipped says why, and is not OK. Failed and Over make the verdict a failure.
const (
	OK      Outcome = "ok"
	Failed  Outcome = "FAIL"
	Skipped Outcome = "skipped"
	Over    Outcome = "over budget"
)

// Row is one line of the table.
type Row struct {
	Name    string  `json:"name"`
	Size    string  `json:"size"`
	Outcome Outcome `json:"outcome"`
	Text    string  `json:"text"`
	// Emulated says that the driver is the emulated one. The checks that follow take its sizes.
	Emulated bool `json:"emulated,omitempty"`
}

// cell makes text fit into one cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

func (r Row) outcome() string {
	what := string(r.Outcome)
	if r.Outcome == Failed || r.Outcome == Over {
		what = "**" + what + "**"
	}
	if r.Text == "" {
		return what
	}
	return what + ": " + cell(r.Text)
}

// Environment variables by which the process of a check learns what to do. They do not begin with FLUENTPS_: that is for settings of runs,
// which programs that a check starts would read.
const (
	CheckVar    = "GPU_CHECK_NAME"     // the name of the check
	emulatedVar = "GPU_CHECK_EMULATED" // not empty: the driver is the emulated one
	budgetVar   = "GPU_CHECK_BUDGET"   // what the check has, as a Go duration
)

// Report is the side of a check: it sends rows to the process that prints them.
type Report struct {
	Name   string // of the check, and of rows that have no name of their own
	Sizes  Sizes
	Budget time.Duration // after which the process is ended
	out    *json.Encoder
}

// NewReport returns the Report of this process, which Program has started. Rows go to out.
func NewReport(out io.Writer) *Report {
	r := &Report{Name: os.Getenv(CheckVar), Sizes: Card, out: json.NewEncoder(out)}
	if os.Getenv(emulatedVar) != "" {
		r.Sizes = Emulated
	}
	r.Budget, _ = time.ParseDuration(os.Getenv(budgetVar)) // a process that is started by hand has none
	return r
}

// Send sends a row. It panics if nobody reads rows any more.
func (r *Report) Send(row Row) {
	if err := r.out.Encode(row); err != nil {
		panic(err)
	}
}

// OK sends the row of a check, or of a part of it, that found nothing wrong.
func (r *Report) OK(name, size, format string, args ...any) {
	r.Send(Row{Name: name, Size: size, Outcome: OK, Text: fmt.Sprintf(format, args...)})
}

// Fail sends the row of what is wrong.
func (r *Report) Fail(name, size, format string, args ...any) {
	r.Send(Row{Name: name, Size: size, Outcome: Failed, Text: fmt.Sprintf(format, args...)})
}

// Skip sends the row of what could not be checked, with the reason.
func (r *Report) Skip(name, size, format string, args ...any) {
	r.Send(Row{Name: name, Size: size, Outcome: Skipped, Text: fmt.Sprintf(format, args...)})
}
