package params

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"

	"fluentps/internal/disk/durable"
)

// contents are the tensors and the metadata of a file.
type contents struct {
	metadata map[string]string // nil for npz
	entries  map[string]entry
}

// entry is a tensor in a file.
type entry struct {
	Tensor
	dtype string // in the words of the format: "F32" or "<f4"
	at    int64  // bytes before the first element
	open  func() (io.ReadCloser, error)
}

// Initial is a file that has exactly the tensors of a model, all of them float32 and finite.
type Initial struct {
	file   *os.File
	path   string
	at     []int64 // bytes before the first element of each parameter, in model order
	sha256 string
}

// A file of more than sizeTimes times the bytes of the model plus sizeOver bytes is refused unread. The allowance is for names,
// and for tensors that the model does not have: the error then lists them by name.
const (
	sizeTimes = 4
	sizeOver  = 64 << 20
)

// OpenInitial opens a file and reads it completely. It accepts the file only if the tensors are exactly those of the model. The error lists
// the tensors that are missing, that are not in the model, or that have another shape or type, and names an element that is not finite.
func OpenInitial(path string, model []Tensor) (*Initial, error) {
	i, err := openInitial(path, model)
	var failed *fs.PathError
	switch {
	case err == nil:
		return i, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("model.init: %q does not exist; name a file that fluentps export wrote and that all hosts "+
			"can read, or remove model.init", path)
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("model.init: %q lies below a file; name the file itself, or remove model.init", path)
	case errors.As(err, &failed) && errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("model.init: %w; check the file's permissions", err)
	}
	return nil, fmt.Errorf("model.init: %s: %s", path, clip(err.Error()))
}

// textMax is the longest error about a file, in bytes: a file chooses the names in it, and all ranks get the text.
const textMax = 4 << 10

func clip(text string) string {
	if len(text) <= textMax {
		return text
	}
	return strings.ToValidUTF8(text[:textMax], "") + fmt.Sprintf("... and %d bytes more", len(text)-textMax)
}

func openInitial(path string, model []Tensor) (*Initial, error) {
	form, err := FormOf(path)
	if err != nil {
		return nil, err
	}
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	i, err := newInitial(f, form, model)
	if err != nil {
		f.Close()
		return nil, err
	}
	i.file, i.path = f, path
	return i, nil
}

func newInitial(f *os.File, form string, model []Tensor) (*Initial, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	want := int64(0)
	for _, t := range model {
		want += t.bytes()
	}
	if size := info.Size(); size < want && form != suffixNPZ || size > sizeTimes*want+sizeOver {
		return nil, fmt.Errorf("it has %d bytes, but the parameters of the model have %d: it is of another model, or was cut off", size, want)
	}
	c, err := open(f, info.Size(), form)
	if err != nil {
		return nil, err
	}
	if err := c.checkModel(form, model); err != nil {
		return nil, err
	}
	i := &Initial{}
	sum := sha256.New()
	for _, t := range model {
		e := c.entries[t.Name]
		if err := e.verify(sum); err != nil {
			return nil, fmt.Errorf("%q: %w", t.Name, err)
		}
		i.at = append(i.at, e.at)
	}
	i.sha256 = hex.EncodeToString(sum.Sum(nil))
	if says := c.metadata[metaSHA256]; says != "" && says != i.sha256 {
		return nil, fmt.Errorf("its parameters have sha256 %s, but its header says %q: it is damaged", i.sha256, says)
	}
	return i, nil
}

func open(f io.ReaderAt, size int64, form string) (*contents, error) {
	if form == suffixNPZ {
		return openNPZ(f, size)
	}
	return openSafetensors(f, size)
}

// problemsShown is how many problems an error lists.
const problemsShown = 8

// checkModel returns an error that lists how the tensors differ from those of a model.
func (c *contents) checkModel(form string, model []Tensor) error {
	f32, way := safetensorsF32, "x.to(torch.float32)"
	if form == suffixNPZ {
		f32, way = npyF32, "x.astype(numpy.float32)"
	}
	var problems []string
	names := map[string]bool{}
	for _, t := range model {
		names[t.Name] = true
		switch e, there := c.entries[t.Name]; {
		case !there:
			problems = append(problems, fmt.Sprintf("%s is missing: the model needs shape %v", t.Name, t.Shape))
		case !slices.Equal(e.Shape, t.Shape):
			problems = append(problems, fmt.Sprintf("%s has shape %v, but the model needs %v", t.Name, e.Shape, t.Shape))
		case e.dtype != f32:
			problems = append(problems, fmt.Sprintf("%s has elements of type %q, must be %s; convert it with %s", t.Name, e.dtype, f32, way))
		}
	}
	state := false
	for _, name := range slices.Sorted(maps.Keys(c.entries)) {
		if !names[name] {
			state = state || strings.HasPrefix(name, optimizerPrefix)
			problems = append(problems, fmt.Sprintf("%q, of shape %v, is not in the model", name, c.entries[name].Shape))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	text := strings.Join(problems[:min(len(problems), problemsShown)], "\n  ")
	if more := len(problems) - problemsShown; more > 0 {
		text += fmt.Sprintf("\n  and %d more", more)
	}
	if state {
		text += "\n  a run cannot start with optimizer state: export without --optimizer, or resume the checkpoint with --resume"
	}
	return fmt.Errorf("its tensors are not those of the model:\n  %s", text)
}

const blockBytes = 1 << 16

// verify reads all elements of a tensor and adds them to a checksum. It fails if an element is not finite.
func (e *entry) verify(sum io.Writer) error {
	r, err := e.open()
	if err != nil {
		return cutOff(err)
	}
	defer r.Close()
	block := make([]byte, blockBytes)
	for left, at := e.bytes(), 0; left > 0; {
		b := block[:min(left, blockBytes)]
		if _, err := io.ReadFull(r, b); err != nil {
			return cutOff(err)
		}
		left -= int64(len(b))
		_, _ = sum.Write(b) // a hash never fails
		for ; len(b) > 0; b = b[elemBytes:] {
			if x := value(b); math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return fmt.Errorf("element %d is %v; training cannot start with it", at, x)
			}
			at++
		}
	}
	if _, err := r.Read(block[:1]); !errors.Is(err, io.EOF) { // a zip reports a wrong checksum here
		return cutOff(err)
	}
	return nil
}

func value(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

// Fill reads elements lo to lo+len(dst)-1 of parameter k, in model order.
func (i *Initial) Fill(dst []float32, k, lo int) error {
	r := io.NewSectionReader(i.file, i.at[k]+int64(lo)*elemBytes, int64(len(dst))*elemBytes)
	block := make([]byte, min(blockBytes, elemBytes*len(dst)))
	for len(dst) > 0 {
		b := block[:min(len(block), elemBytes*len(dst))]
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("model.init: %s: %w", i.path, cutOff(err))
		}
		for ; len(b) > 0; b, dst = b[elemBytes:], dst[1:] {
			dst[0] = value(b)
		}
	}
	return nil
}

// SHA256 returns the sha256 of the parameters in model order, as in summary.json.
func (i *Initial) SHA256() string { return i.sha256 }

// Close closes the file.
func (i *Initial) Close() error { return i.file.Close() }

// cutOff replaces the error of a file that ends too early. It returns every other error, of the file system or the zip, as it is.
func cutOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("it was cut off")
	}
	return err
}
