package mutations

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/lock"
	"fluentps/internal/plan/slurm"
	"fluentps/internal/policy/payload"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/csv"
	"fluentps/ps/workload/dataset/numpy/numpytest"
)

// memoryMax is the memory limit of readers: cluster.memory_max.
const memoryMax = 16 << 20

// reader is an input of the program, with the changes to try.
type reader struct {
	name  string
	share int               // of the changes
	files map[string][]byte // a valid input, for an empty folder
	// read returns a sum of the content that was read, and the output of the reader.
	read func(dir string) (sum, said string, err error)
	// change changes the files; nil: with the changes for all kinds of files.
	change func(r *rand.Rand, files map[string][]byte) (kind string)
	varies bool // the sum of the unchanged input differs from time to time
}

func sum(v ...any) string {
	h := sha256.New()
	for _, x := range v {
		fmt.Fprintf(h, "%v\n", x)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// dataReader is a data set whose rows are compared.
func dataReader(spec workload.DataSpec, files map[string][]byte) *reader {
	train := spec.Path
	return &reader{name: "data " + spec.Set, share: 4, files: files, read: func(dir string) (string, string, error) {
		s := spec
		s.Memory, s.Path = memoryMax, filepath.Join(dir, train)
		if s.Test != "" {
			s.Test = filepath.Join(dir, spec.Test)
		}
		set, err := dataset.Load(s)
		if err != nil {
			return "", "", err
		}
		report, err := set.Describe()
		if err != nil {
			return "", "", err
		}
		x, y := make([]float32, set.Train.Cols()), make([]int32, 1)
		all := []any{set.Samples(), report.Train, report.Test}
		for _, t := range []dataset.Table{set.Train, set.Test} {
			for row := range min(t.Rows(), 50) { // the sums of Describe cover all rows
				if len(x) > 1<<20 {
					break
				}
				t.Fill(x, y, []int32{int32(row)})
				all = append(all, x, y)
			}
		}
		return sum(all...), strings.Join(set.Notes, "\n"), nil
	}}
}

func idx(magic uint32, dims []uint32, values ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, magic)
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	return append(b, values...)
}

func repeated(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }

// fixture is a file of Parquet that Apache Arrow has written.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("..", "..", "ps", "workload", "dataset", "parquet", "testdata", name+".parquet"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func dataReaders(t testing.TB) []*reader {
	x := numpytest.Entry{Name: "x", File: numpytest.File(1, "<f4", false, []int{3, 2}, numpytest.Float32s(0, 1, 2, 3, 0.5, -1))}
	y := numpytest.Entry{Name: "y", File: numpytest.File(1, "|u1", false, []int{3}, []byte{0, 1, 1})}
	images := map[string][]byte{
		"train-images-idx3-ubyte":    idx(0x803, []uint32{3, 2, 2}, repeated(7, 12)...),
		"train-labels-idx1-ubyte.gz": pack(idx(0x801, []uint32{3}, 0, 1, 2)),
		"t10k-images-idx3-ubyte.gz":  pack(idx(0x803, []uint32{1, 2, 2}, 1, 2, 3, 4)), "t10k-labels-idx1-ubyte": idx(0x801, []uint32{1}, 1),
	}
	cifar := map[string][]byte{"test_batch.bin": append([]byte{3}, repeated(9, 3072)...)}
	for i := range 5 {
		cifar[fmt.Sprintf("data_batch_%d.bin.gz", i+1)] = pack(append([]byte{byte(i)}, repeated(byte(i), 3072)...))
	}
	return []*reader{
		dataReader(workload.DataSpec{Set: "idx"}, images),
		dataReader(workload.DataSpec{Set: "cifar10"}, cifar),
		dataReader(workload.DataSpec{Set: "csv", Path: "a", Test: "b"},
			map[string][]byte{"a": []byte("1,2,0\n3.5,-4e2,1\n \"5\",6,2\n7,8,1\n"), "b.gz": pack([]byte("1,2,0\r\n3,4,1\r\n"))}),
		dataReader(workload.DataSpec{Set: "parquet", Path: "a", Test: "b", CSV: csv.Options{Missing: csv.MissingMean,
			Columns: csv.KindsOf([]string{"city", "kind", csv.Others}, []string{string(csv.OneHot), string(csv.OneHot), string(csv.Standardize)})}},
			map[string][]byte{"a": fixture(t, "zstd-2-dict"), "b": fixture(t, "snappy-1-dict")}),
		dataReader(workload.DataSpec{Set: "libsvm", Path: "a", Test: "b"},
			map[string][]byte{"a": []byte("-1 1:2 3:4.5\n+1 2:1\n\n+1 7:-1e-3\n"), "b.gz": pack([]byte("+1 1:1\n-1 2:2\n"))}),
		dataReader(workload.DataSpec{Set: "ratings", Path: "a", Test: "b"},
			map[string][]byte{"a": []byte("3,1,4.5\n0,2,-1,881250949\n3,0,2.5\n1,2,3,2005-04-02 23:53:47\n"),
				"b.gz": pack([]byte("5 0 1\n1 7 2\n"))}),
		dataReader(workload.DataSpec{Set: "csv", Path: "a", Test: "b", Label: "kind", CSV: csv.Options{Missing: csv.MissingMean, Drop: "id",
			Columns: csv.KindsOf([]string{"city", csv.Others}, []string{string(csv.OneHot), string(csv.Standardize)})}}, map[string][]byte{
			"a": []byte("id;kind;city;\"size, in m\"\r\n# by hand\r\n1;\"no\";\"Rome; Italy\";1.5\r\n2;yes;Oslo;NA\r\n3;no;Oslo;4e2\r\n"),
			"b": []byte("id;kind;city;\"size, in m\"\n1;no;Rome;3\n")}),
		dataReader(workload.DataSpec{Set: "csv", Path: "a", Split: dataset.Split{Test: 0.4}, CSV: csv.Options{Decimal: csv.DecimalComma}},
			map[string][]byte{"a": []byte("1,5\t2\tno\n3,25\t4\tyes\n-5\t6e1\tno\n7\t8\tyes\n0,5\t1\tno\n")}),
		dataReader(workload.DataSpec{Set: "libsvm", Path: "a", Test: "b"}, map[string][]byte{
			"a": []byte("# made by hand\nspam qid:1 1:2 3:4.5\nham 2:1 # x\nspam 7:-1e-3 0:2\n"), "b": []byte("ham 1:1\nspam 2:2\n")}),
		dataReader(workload.DataSpec{Set: "ratings", Path: "a", Test: "b"}, map[string][]byte{
			"a":     []byte("user,item,rating\nbob,\"tea, hot\",4.5\n76561198000,2,-1,881250949\nann,tea,2.5\n"),
			"b.zst": []byte("1,tea,2\nbob,7,3\n")}),
		dataReader(workload.DataSpec{Set: "ratings", Path: "a"}, map[string][]byte{
			"a": []byte("%%MatrixMarket matrix coordinate real general\n% by scipy\n4 3 3\n1 2 0.5\n4 3 -2e1\n2 1 7\n")}),
		dataReader(workload.DataSpec{Set: "npy", Path: "a.npz"}, map[string][]byte{"a.npz": numpytest.Archive(t, false, x, y)}),
		dataReader(workload.DataSpec{Set: "npy", Path: "a.npz"}, map[string][]byte{"a.npz": numpytest.Archive(t, true, x, y)}),
		dataReader(workload.DataSpec{Set: "csv", Path: "a", Test: "b", Regress: dataset.Regression{On: true, Standardize: true}},
			map[string][]byte{"a": []byte("x,y\n1,2.5\n3.5,-4e2\n \"5\",6\n"), "b": []byte("x,y\n1,2\n")}),
		dataReader(workload.DataSpec{Set: "libsvm", Path: "a", Regress: dataset.Regression{On: true}},
			map[string][]byte{"a": []byte("2.5 1:2\n-1e2 2:1 # x\n0 7:1\n")}),
		dataReader(workload.DataSpec{Set: "images", Path: "train", Test: "test"}, map[string][]byte{"train/a/1.png": picture(1, false),
			"train/b/2.png": picture(2, false), "test/a/3.jpg": picture(3, true), "test/b/.hidden": []byte("x")}),
		dataReader(workload.DataSpec{Set: "images", Path: "l.csv"}, map[string][]byte{"l.csv": []byte("file,class\n1.jpg,cat\n2.png,\"dog\"\n"),
			"1.jpg": picture(1, true), "2.png": picture(2, false)}),
		packReader(t, workload.DataSpec{Set: "generated", Rows: 40, TestRows: 7, Features: 4, Classes: 3}),
		packReader(t, workload.DataSpec{Set: "generated_sparse", Rows: 40, TestRows: 7, Features: 30, Nonzeros: 4}),
	}
}

// picture is a small picture.
func picture(seed int, isJPEG bool) []byte {
	p := image.NewRGBA(image.Rect(0, 0, 9, 8))
	for i := range p.Pix {
		if p.Pix[i] = byte(i * seed * 7); i%4 == 3 {
			p.Pix[i] = 255
		}
	}
	var b bytes.Buffer
	var err error
	if isJPEG {
		err = jpeg.Encode(&b, p, nil)
	} else {
		err = png.Encode(&b, p)
	}
	if err != nil {
		panic(err)
	}
	return b.Bytes()
}

// packReader reads the pack of a set.
func packReader(t testing.TB, s workload.DataSpec) *reader {
	t.Helper()
	set, err := dataset.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "p"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := set.Pack(f, "test", func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return dataReader(workload.DataSpec{Set: "packed", Path: "p.fps"}, map[string][]byte{"p.fps": b})
}

// textReader is a reader of one text. read returns a sum of the result, or an error.
func textReader(name string, read func(text string) (string, error), seeds ...string) *reader {
	files := map[string][]byte{}
	for i, seed := range seeds {
		files[fmt.Sprint(i)] = []byte(seed)
	}
	return &reader{name: name, share: 1, files: files, read: func(dir string) (string, string, error) {
		var all []string
		for i := range seeds {
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
			if err != nil {
				return "", "", err
			}
			got, err := read(string(text))
			if err != nil {
				return "", "", err
			}
			all = append(all, got)
		}
		return sum(all), "", nil
	}}
}

// configured loads a configuration and returns its resolved values.
func configured(text string, o configs.Options) (string, error) {
	cfg, _, diags := configs.Parse("c.yaml", []byte(text), o)
	if diags.Failed() {
		var b bytes.Buffer
		_ = diags.Write(&b)
		if b.Len() > 1<<20 {
			return "", fmt.Errorf("bug: %d bytes of problems", b.Len())
		}
		return "", errors.New(b.String())
	}
	return fmt.Sprint(configs.Values(cfg)), nil
}

// environment makes an environment from lines of NAME=VALUE.
func environment(text string) func(string) string {
	of := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, _ := strings.Cut(line, "=")
		of[name] = value
	}
	return func(name string) string { return of[name] }
}

func textReaders() []*reader {
	readers := []*reader{
		textReader("configuration", func(text string) (string, error) { return configured(text, configs.Options{}) }, experiment),
		textReader("FLUENTPS_* environment", func(text string) (string, error) {
			return configured(experiment, configs.Options{Env: strings.Split(text, "\n")})
		}, "FLUENTPS_TRAIN__STOP__UPDATES=20\nFLUENTPS_SYNC__0__SCHEME=asp\nFLUENTPS_SEED=4"),
		textReader("--set", func(text string) (string, error) {
			return configured(experiment, configs.Options{Set: strings.Split(text, "\n")})
		}, "train.stop.updates=20\nsync[0]={match: '*', scheme: ssp, staleness: 3}"),
		textReader("SLURM_* environment", func(text string) (string, error) {
			j, err := slurm.FromEnv(environment(text))
			return fmt.Sprintf("%+v", j), err
		}, "SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=rack[1-2]n[08-10]\nSLURM_TASKS_PER_NODE=2(x3),1(x3)\n"+
			"SLURM_ARRAY_JOB_ID=3\nSLURM_ARRAY_TASK_ID=2\nSLURM_STEP_ID=0\nSLURM_LOCALID=1\nSLURM_JOB_END_TIME=1800000000\nSLURM_JOB_GPUS=0-3",
			"SLURM_JOB_ID=7\nSLURM_HET_SIZE=2\nSLURM_JOB_NODELIST_HET_GROUP_0=n[1-2]\nSLURM_JOB_NODELIST_HET_GROUP_1=m\nSLURM_GPUS_ON_NODE=2"),
		textReader("host list", func(text string) (string, error) {
			hosts, err := slurm.Expand(text)
			if err != nil {
				return "", err
			}
			again, err := slurm.Expand(slurm.Compress(hosts))
			if err != nil || fmt.Sprint(again) != fmt.Sprint(hosts) {
				return "", fmt.Errorf("bug: %q comes back as %q, %v", hosts, again, err)
			}
			return fmt.Sprint(hosts), nil
		}, "rack[1-2]n[08-10],login,a[1,3-5,007]"),
		textReader("owner of a lock", func(text string) (string, error) {
			var o lock.Owner
			if json.Unmarshal([]byte(text), &o) != nil {
				return "", errors.New("a lock of nobody known") // the package handles it like that
			}
			return (&lock.HeldError{Dir: "d", Owner: o}).Error() + (&lock.LostError{Dir: "d", Owner: o}).Error(), nil
		}, `{"host":"n1","pid":77,"job":"7","restarts":1,"since":"2026-01-02T03:04:05Z","machine":"m","started":"9","token":"T"}`),
		{name: "best.json", share: 1,
			files: map[string][]byte{"best.json": []byte(`{"checkpoint":"000000000007","by":"accuracy","value":0.5}` + "\n")},
			read: func(dir string) (string, string, error) {
				b, err := checkpoint.ReadBest(dir)
				return sum(fmt.Sprintf("%+v", b)), "", err
			}},
	}
	for _, r := range readers {
		if r.name == "configuration" {
			r.share = 3
		}
	}
	return append(readers, wireReaders()...)
}

func wireReaders() (readers []*reader) {
	frame := make([]byte, wire.Size+wire.PieceSize, 200)
	wire.Encode(frame, &wire.Header{Kind: wire.Push, Worker: 1, Shard: 2, Parts: 3, Iter: 4, Version: 5, Samples: 6, Loss: 7})
	wire.EncodePiece(frame[wire.Size:], wire.PushPiece, 3, 8)
	frame = append(frame, 1, 2, 3, 4, 5, 6, 7, 8)
	readers = append(readers, textReader("frame", func(text string) (string, error) {
		var all []string
		for rest := []byte(text); len(rest) > 0; {
			r, more, err := wire.Next(rest)
			if err != nil {
				return "", err
			}
			if len(more) >= len(rest) {
				return "", errors.New("bug: a record of no bytes")
			}
			all, rest = append(all, fmt.Sprintf("%+v", r)), more
		}
		return sum(all), nil
	}, string(frame)))
	for _, name := range payload.All.Names() {
		c, err := payload.New(name, payload.Params{Ratio: 0.5, Threshold: 0.1})
		if err != nil {
			panic(err)
		}
		b := make([]byte, c.EncodedMax(6))
		b = b[:c.Encode(b, []float32{1, -2, 3, 0, 5, 6e-9}, nil)]
		readers = append(readers, textReader("payload "+name, func(text string) (string, error) {
			dst := make([]float32, 6)
			err := c.Decode(dst, []byte(text))
			return fmt.Sprint(dst), err
		}, string(b)))
	}
	k := payload.KeyedRuns([]uint64{3, 9}, []int{2, 4})
	b := make([]byte, k.EncodedMax(6))
	k.Encode(b, []float32{1, -2, 3, 0, 5, 6}, nil)
	return append(readers, textReader("payload with keys", func(text string) (string, error) {
		dst := make([]float32, 6)
		err := k.Decode(dst, []byte(text))
		return fmt.Sprint(dst), err
	}, string(b)))
}

// write makes the files of a reader in an empty folder.
func write(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
}
