package lock

import (
	"encoding/json"
	"testing"
)

// FuzzOwner: for any content of a lock's file, isDead does not panic and the errors have a text.
func FuzzOwner(f *testing.F) {
	f.Add([]byte(`{"host":"n1","pid":77,"job":"7","restarts":1,"since":"2026-01-02T03:04:05Z","machine":"m","started":"9","token":"T"}`))
	f.Add([]byte(`{"host":"\u001b[2J","pid":-1,"job":"7; reboot","restarts":-9,"token":"T"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var o Owner
		if json.Unmarshal(line, &o) != nil {
			return
		}
		me := Owner{Host: "n1", Job: "7", Restarts: 2, Machine: o.Machine}
		_ = o.isDead(&me)
		if (&HeldError{Dir: "d", Owner: o}).Error() == "" || (&LostError{Dir: "d", Owner: o}).Error() == "" {
			t.Error("an error without a text")
		}
	})
}
