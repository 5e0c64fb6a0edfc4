package resume

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/internal/rank/train"
	"fluentps/kernels/cpu"
)

// seal writes the text of a manifest with its checksum.
func seal(t testing.TB, dir, body string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), checkpoint.Seal([]byte(body), checkpoint.Format), 0o666); err != nil {
		t.Fatal(err)
	}
}

// rewriteFile changes the text of a manifest, or the header and the vectors of a file, and makes all checksums valid again.
func rewriteFile(t testing.TB, dir, name string, change func(text string, vectors []byte) (string, []byte)) {
	t.Helper()
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if name == "manifest.json" {
		body, _ := change(string(data[:bytes.LastIndex(data, []byte(",\n  \"crc32c\": "))])+"\n}\n", nil)
		seal(t, dir, body)
		return
	}
	n := binary.LittleEndian.Uint32(data[12:])
	text, vectors := change(string(data[16:16+n]), data[16+n:])
	head := binary.LittleEndian.AppendUint32(data[:12:12], uint32(len(text)))
	data = append(append(head, text...), vectors...)
	m, err := checkpoint.Open(dir)
	if err := errors.Join(err, os.WriteFile(path, data, 0o666)); err != nil {
		t.Fatal(err)
	}
	m.Parameters, m.Optimizer = nil, nil // they may lie elsewhere now
	for i := range m.Files {
		if e := &m.Files[i]; e.Name == name {
			e.Bytes, e.CRC32C = int64(len(data)), crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
		}
	}
	in := durable.Below(dir)
	if err := errors.Join(checkpoint.Amend(in, m), in.Close()); err != nil {
		t.Fatal(err)
	}
}

// replaceField replaces the parenthesized part of the first match of a pattern.
func replaceField(t testing.TB, pattern, by string) func(string, []byte) (string, []byte) {
	return func(text string, vectors []byte) (string, []byte) {
		at := regexp.MustCompile(pattern).FindStringSubmatchIndex(text)
		if at == nil {
			t.Fatalf("nothing like %q in %s", pattern, text)
		}
		return text[:at[2]] + by + text[at[3]:], vectors
	}
}

// replaceElement replaces an element of the vectors.
func replaceElement(at int, by float64) func(string, []byte) (string, []byte) {
	return func(text string, vectors []byte) (string, []byte) {
		if at < 0 {
			at += len(vectors) / 4
		}
		binary.LittleEndian.PutUint32(vectors[4*at:], math.Float32bits(float32(by)))
		return text, vectors
	}
}

// doubleVectors makes a file claim one more vector, with the same elements in all.
func doubleVectors(t testing.TB) func(string, []byte) (string, []byte) {
	return func(text string, vectors []byte) (string, []byte) {
		at := regexp.MustCompile(`"lengths":\[(\d+)\]`).FindStringSubmatchIndex(text)
		if at == nil {
			t.Fatalf("not one vector in %s", text)
		}
		return text[:at[3]] + "," + text[at[2]:], append(vectors, vectors...)
	}
}

// A checkpoint with valid checksums may have fields that no run wrote. The error names the field, and the run resumes from
// the previous checkpoint, to the bits of a run that was never interrupted.
func TestInvalidFieldsAreNamed(t *testing.T) {
	const tiny = "-9223372036854775808"
	type crafted struct {
		file   string
		change func(string, []byte) (string, []byte)
		says   string
	}
	in := func(file, pattern, by, says string) crafted { return crafted{file, replaceField(t, pattern, by), says} }
	lead, server, worker, manifest := "server-0000.bin", "server-0001.bin", "worker-0002.bin", "manifest.json"
	var cases []crafted
	for key, by := range map[string]string{"version": "-1", "samples": tiny, "rated": "-1", "accepted": "-5",
		"closed": "12345", "until": "-2"} {
		cases = append(cases, in(server, `"node":{[^}]*"`+key+`":(-?\d+)`, by, "server-0001.bin: shards[0].node."+key+" is "+by))
	}
	cases = append(cases,
		in(lead, `"version":(\d+)`, "7", "shards[0].node.version is 7, but state.version of manifest.json is 9"),
		in(lead, `"samples":(\d+)`, "0", "shards[0].node.samples is 0, but samples of manifest.json is"),
		in(lead, `"node":({[^}]*})`, "{}", "it has no shards[0].node.version"),
		in(lead, `"node":({[^}]*})`, "null", "it has no shards[0].node"),
		in(lead, `("version":\d+),`, `"Version":9`, "it has no shards[0].node.version"),
		in(lead, `"steps":(\d+)`, "-1", "shards[0].steps is -1"),
		in(lead, `"steps":(\d+)`, "10", "shards[0].steps is 10, must be 0 to 9"),
		in(lead, `"lo":(\d+)`, tiny, "shards[0].lo is "+tiny),
		in(lead, `"hi":(\d+)`, "9223372036854775807", "shards[0].hi is 9223372036854775807"),
		in(lead, `"vectors":(\d+)`, "-1", "shards[0].vectors is -1"),
		in(lead, `"vectors":(\d+)`, "1", "vectors follow those of its"),
		in(lead, `"vectors":(\d+)`, "16", "but the vectors of the file are different"),
		crafted{lead, replaceElement(0, math.NaN()), "of its parameters is NaN"},
		crafted{server, replaceElement(3, math.Inf(-1)), "of its parameters is -Inf"},
		crafted{server, replaceElement(-1, -1), "of vector 2 of its optimizer is -1"},
		crafted{server, replaceElement(-1, math.NaN()), "of vector 2 of its optimizer is NaN"},
		in(worker, `"next":(\d+)`, "1000000", "worker-0002.bin: next is 1000000, but starts[2] of manifest.json is 9"),
		in(worker, `"next":(\d+)`, tiny, "next is "+tiny),
		in(worker, `"steps":(\d+)`, "-1", "steps is -1"),
		in(worker, `"steps":(\d+)`, `0,"script":9`, "worker-0002.bin: script is 9 bytes, which the last vector cannot have"),
		in(worker, `"steps":(\d+)`, `0,"script":-9`, "script is -9 bytes"),
		in(worker, `"state":({.*})}`, "{}", "it has no next"),
		crafted{worker, replaceElement(1, math.NaN()), "element 1 of its residual is NaN"},
		in(worker, `"residual":(true)`, "false", `worker-0002.bin: residual is false, but with payload.push "topk" it is true`),
		crafted{worker, doubleVectors(t), "worker-0002.bin: it has 2 vectors, and a worker of its configuration keeps 1"},
		in(manifest, `"iteration": ?(\d+)`, "-1", "iteration is -1"),
		in(manifest, `"samples": ?(\d+)`, tiny, "samples is "+tiny),
		in(manifest, `"number": ?(\d+)`, "999", "number is 999, but the folder has number 2"),
		in(manifest, `"iteration": ?(\d+)`, "5", "iteration is 5, but state.accepted for each of 4 workers is 9"),
		in(manifest, `"servers": ?(\d+)`, "1048576", "servers is 1048576, but config.cluster.servers is 2"),
		in(manifest, `"servers": ?(\d+)`, "1", `servers is 1, but it names a file "server-0001.bin": the last one must be "server-0000.bin"`),
		in(manifest, `"name": ?"(worker-0001.bin)"`, "worker-0004.bin", `workers is 4, but it names a file "worker-0004.bin"`),
		in(manifest, `"loss": ?{[^}]*"samples": ?\[\s*(\d+)`, "-5", "loss.samples[0] is -5, must be 0 or more"),
		in(manifest, `"servers": ?(\d+)`, "4611686018427387904", "servers is 4611686018427387904"),
		in(manifest, `"starts": ?\[\s*(\d+)`, "10", "starts[1] is 9, but starts[0], whose worker is in step with this one, is 10"),
		in(manifest, `"starts": ?\[\s*(\d+)`, "-9", "starts[0] is -9"),
		in(manifest, `"starts": ?\[\s*(\d+)`, "1152921504606846975", "starts[0] is 1152921504606846975"),
		in(manifest, `"starts": ?(\[[^]]*\])`, "[9]", "4 workers and 1 positions"),
		in(manifest, `"name": ?"(worker-0001.bin)"`, "../../../x", `a file "../../../x"`),
		in(manifest, `"name": ?"(worker-0001.bin)"`, "manifest.json", `a file "manifest.json"`),
		in(manifest, `"name": ?"(worker-0001.bin)"`, "worker-0000.bin", `a file "worker-0000.bin"`),
		in(manifest, `"bytes": ?(\d+)`, "9223372036854775807", "of 9223372036854775807 bytes"),
		in(manifest, `"accepted": ?(\d+)`, "-1", "state.accepted is -1"),
		in(manifest, `"trained_ns": ?(\d+)`, tiny, "state.trained_ns is "+tiny),
		in(manifest, `"state": ?({\s*"arena")`, `{"other"`, "it has no arena"),
	)
	set := []string{"train.optimizer={name: adam, lr: 0.01}", "payload={push: topk, ratio: 0.1}", "model={name: mlp, layers: [16]}"}
	origin := filepath.Join(t.TempDir(), "out")
	leave(t, origin, load(t, set...), 6, 5)
	leave(t, origin, load(t, set...), 6, 9)
	for i, c := range cases {
		if stationtest.UnderRace && i%8 > 0 { // the same readers each time, on one goroutine
			continue
		}
		t.Run(c.file+" "+c.says, func(t *testing.T) {
			dir := copied(t, origin)
			rewriteFile(t, at(dir, 2), c.file, c.change)
			f := search{resume: dir}.restore(t, load(t, set...), 6)
			f.mustTake(t, "000000000001")
			if !strings.Contains(f.said, c.says) {
				t.Errorf("no word of %q in %s", c.says, f.said)
			}
		})
	}
}

// A FIFO or a device in the place of a manifest or a file counts as damage at once; nothing reads it.
func TestACheckpointHasRegularFiles(t *testing.T) {
	origin := twoLeft(t)
	for _, name := range []string{"manifest.json", "server-0001.bin", "worker-0000.bin"} {
		for what, put := range map[string]func(path string) error{
			"a FIFO":   func(path string) error { return syscall.Mkfifo(path, 0o666) },
			"a device": func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			dir := copied(t, origin)
			path := filepath.Join(at(dir, 2), name)
			if err := errors.Join(os.Remove(path), put(path)); err != nil {
				t.Fatal(err)
			}
			f := search{resume: dir}.restore(t, load(t), 6)
			f.mustTake(t, "000000000001")
			if want := "is " + what + ", must be a regular file"; !strings.Contains(f.said, want) {
				t.Errorf("%s that is %s: no word of %q in %s", name, what, want, f.said)
			}
		}
	}
}

// twoLeft is the folder of a run that has left two checkpoints, after 5 and 9 iterations.
func twoLeft(t testing.TB) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "out")
	leave(t, dir, load(t), 6, 5)
	leave(t, dir, load(t), 6, 9)
	return dir
}

// With other servers, overlapping shards of the checkpoint would leave other shards without their elements.
func TestOverlappingShardsOfACheckpointAreRefused(t *testing.T) {
	set := []string{"model={name: mlp, layers: [16]}", "shards.slice=layer"}
	dir := filepath.Join(t.TempDir(), "out")
	leave(t, dir, load(t, set...), 6, 5)
	newest := at(dir, 1)
	var lengths struct{ Lengths []int }
	rewriteFile(t, newest, "server-0001.bin", func(text string, vectors []byte) (string, []byte) {
		if err := json.Unmarshal([]byte(text), &lengths); err != nil {
			t.Fatal(err)
		}
		at := regexp.MustCompile(`"lo":(\d+),"hi":(\d+)`).FindAllStringSubmatchIndex(text, -1)
		last := at[len(at)-1]
		n := lengths.Lengths[len(lengths.Lengths)-1]
		return text[:last[2]] + fmt.Sprintf(`0,"hi":%d`, n) + text[last[5]:], vectors
	})
	f := search{resume: dir, allow: []string{"cluster.servers"}}.restore(t, load(t, append(set, "cluster.servers=1")...), 5)
	if err := errors.Join(f.errs...); err == nil || !strings.Contains(err.Error(), "both have the elements") {
		t.Errorf("%v", err)
	}
}

// The state of a scheme is validated before a checkpoint is taken. The error names the shard, and the run takes the
// previous checkpoint, if it may.
func TestInvalidSchemeStateIsNamed(t *testing.T) {
	set := "sync=[{match: '*', scheme: dssp, s_l: 2, s_u: 4}]"
	origin := filepath.Join(t.TempDir(), "out")
	leave(t, origin, load(t, set), 6, 40)
	leave(t, origin, load(t, set), 6, 80)
	for name, change := range map[string]func(memory []byte) []byte{
		"of nothing":   func([]byte) []byte { return make([]byte, 3) },
		"out of range": func(memory []byte) []byte { return append(memory[:len(memory)-1], 0x7f) },
	} {
		dir := copied(t, origin)
		newest := at(dir, 2)
		rewriteFile(t, newest, "server-0000.bin", func(text string, vectors []byte) (string, []byte) {
			at := regexp.MustCompile(`"memory":"([^"]*)"`).FindStringSubmatchIndex(text)
			memory, err := base64.StdEncoding.DecodeString(text[at[2]:at[3]])
			if err != nil {
				t.Fatal(err)
			}
			return text[:at[2]] + base64.StdEncoding.EncodeToString(change(memory)) + text[at[3]:], vectors
		})
		const says = "server-0000.bin: shards[0].node.memory: "
		f := search{resume: newest}.restore(t, load(t, set), 6)
		f.mustRefuse(t, says)
		f.mustRefuse(t, "the checkpoint is not complete")
		f = search{resume: dir}.restore(t, load(t, set), 6)
		f.mustTake(t, "000000000001")
		if !strings.Contains(f.said, says) {
			t.Errorf("%s: no word of %q in %s", name, says, f.said)
		}
	}
}

// A run that asks for another payload or scheme than the checkpoint has is refused by the side that cannot go on, with the
// names of the keys. That is no damage of the checkpoint.
func TestAConfigurationErrorIsNoDamage(t *testing.T) {
	for _, c := range []struct {
		was, now string
		allowed  []string
		then     func(*station.Station, *Origin) error
		says     string
	}{
		{"payload={push: topk, ratio: 0.1}", "payload={}", []string{"payload.push", "payload.ratio", "payload.thresholds"}, resumeWorker,
			"saved 1 vectors and needs 0 now; resume with the local section, the payload and the push of the checkpoint"},
		{"sync=[{match: '*', scheme: dssp, s_l: 2, s_u: 4}]", "sync=[{match: '*', scheme: asp}]",
			[]string{"sync[0].scheme", "sync[0].s_l", "sync[0].s_u", "sync[0].mode", "sync[0].release"}, resumeServer, "resume with the scheme"},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		leave(t, dir, load(t, c.was), 6, 20)
		f := search{resume: dir, allow: c.allowed, then: c.then}.restore(t, load(t, c.now), 6)
		if err := errors.Join(f.errs...); err == nil || !strings.Contains(err.Error(), c.says) || f.said != "" {
			t.Errorf("%v: %v, said %q, want %q", c.allowed, err, f.said, c.says)
		}
	}
}

// resumeServer puts the server of a rank at the checkpoint.
func resumeServer(st *station.Station, q *Origin) error {
	if st.Roles.Server(st.Me) < 0 {
		return nil
	}
	s, err := serve.New(st, serve.Options{Start: q.Start()})
	if err != nil {
		return err
	}
	defer s.Close()
	s.Resume(q.Start(), q.Server, q.ServerVectors)
	return nil
}

// workerOf puts the worker of a rank at the checkpoint.
func workerOf(st *station.Station, q *Origin) (*train.Side, error) {
	device := cpu.New(1)
	s, err := train.New(st, train.Options{Start: q.Start(), Device: device})
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	if err := s.Resume(q.Worker, q.WorkerVectors, nil); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// resumeWorker puts the worker of a rank at the checkpoint and closes it.
func resumeWorker(st *station.Station, q *Origin) error {
	if st.Roles.Worker(st.Me) < 0 {
		return nil
	}
	s, err := workerOf(st, q)
	if err == nil {
		s.Close()
	}
	return err
}
