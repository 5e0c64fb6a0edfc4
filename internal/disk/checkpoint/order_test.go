package checkpoint

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fluentps/internal/disk/durable"
)

// Files are little endian on every machine: a big-endian machine swaps the bytes when it writes and reads.
func TestFilesAreLittleEndian(t *testing.T) {
	v := make([]float32, blockMax/4+3)
	for i := range v {
		v[i] = float32(i) + 0.25
	}
	v[1] = float32(math.Inf(-1))
	var want []byte
	for _, x := range v {
		want = binary.LittleEndian.AppendUint32(want, math.Float32bits(x))
	}
	machine := littleEndian
	defer func() { littleEndian = machine }()
	for _, same := range []bool{machine, !machine} {
		littleEndian = same
		dir := t.TempDir()
		e, err := WriteFile(durable.Below(dir), "a.bin", 7, v, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name))
		if err != nil {
			t.Fatal(err)
		}
		body := text[len(text)-len(want):]
		if same != machine { // littleEndian was wrong about this machine
			body = swapped(nil, body)
		}
		if !bytes.Equal(body, want) {
			t.Errorf("littleEndian %v: the file has other bytes", same)
		}
		var state int
		got, err := ReadFile(dir, e, &state)
		if err != nil || state != 7 || len(got) != 2 || !slices.Equal(got[0], v) || len(got[1]) != 0 {
			t.Errorf("littleEndian %v: %d vectors came back, state %d: %v", same, len(got), state, err)
		}
	}
}
