package scheme

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"fluentps/internal/policy/work/code"
)

// TestCode is a gradient code as a run has it. Each partition has 32 samples.
type TestCode struct {
	*code.Code
	workers int
	after   time.Duration
	// IsPrivate says that a quarter of each partition is a private part.
	IsPrivate bool
}

// Samples implements Code.
func (c *TestCode) Samples() int64 { return int64(32 * c.workers) }

// Deadline implements Code.
func (c *TestCode) Deadline() time.Duration { return c.after }

// Private implements Code.
func (c *TestCode) Private() bool { return c.IsPrivate }

// NewTestCode makes a code for so many workers.
func NewTestCode(t testing.TB, s code.Spec, workers int, after time.Duration) *TestCode {
	s.Workers, s.Draws, s.ConditionMax, s.Seed = workers, 20, 1e9, 1
	c, err := code.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return &TestCode{Code: c, workers: workers, after: after}
}

// SetKey sets the field of p with the yaml tag key from text.
func SetKey(p Params, key, text string) error {
	v := reflect.ValueOf(p).Elem()
	for k := range v.NumField() {
		if v.Type().Field(k).Tag.Get("yaml") != key {
			continue
		}
		if v.Field(k).Kind() == reflect.String {
			v.Field(k).SetString(text)
			return nil
		}
		_, err := fmt.Sscan(text, v.Field(k).Addr().Interface())
		return err
	}
	return fmt.Errorf("%T has no key %s", p, key)
}
