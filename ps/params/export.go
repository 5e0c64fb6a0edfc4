package params

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"fluentps/ps/checkpoint"
	"fluentps/ps/durable"
)

// optimizerPrefix begins the names of what an optimizer keeps of a parameter, as in optimizer.velocity.fc1.weight.
const optimizerPrefix = "optimizer."

// metaSHA256 is the entry of the metadata that a reader holds the parameters to.
const metaSHA256 = "parameters_sha256"

// Export writes the tensors of a checkpoint into a file, in the form that its suffix says: all of them or nothing. optimizer adds what
// the servers keep of their optimizer. A file of that name is replaced. It says how many tensors were written, and the sha256 of the
// parameters in model order, as summary.json has it.
func Export(from *checkpoint.Tensors, out string, optimizer bool) (tensors int, sha string, err error) {
	form, err := FormOf(out)
	if err != nil {
		return 0, "", err
	}
	m := from.Manifest
	all := m.Parameters
	if optimizer {
		all = slices.Concat(all, m.Optimizer)
	}
	var list []Tensor
	for _, t := range all {
		list = append(list, Tensor{t.Name, t.Shape})
	}
	values := func(w io.Writer, k int) error {
		_, err := io.Copy(w, from.Reader(&all[k]))
		return err
	}
	sum := sha256.New()
	for k := range m.Parameters {
		if err := values(sum, k); err != nil {
			return 0, "", err
		}
	}
	sha = hex.EncodeToString(sum.Sum(nil))
	in := durable.Below(filepath.Dir(out))
	defer in.Close()
	return len(list), sha, in.Replace(filepath.Base(out), func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<20)
		if form == suffixNPZ {
			err = writeNPZ(w, list, values)
		} else {
			err = writeSafetensors(w, list, metadata(m, sha), values)
		}
		return errors.Join(err, w.Flush())
	})
}

// metadata says where parameters come from.
func metadata(m *checkpoint.Manifest, sha string) map[string]string {
	return map[string]string{"program": m.Program, "build": m.Build, "model": m.Config["model.name"], "checkpoint": strconv.FormatInt(m.Number, 10), "iteration": strconv.FormatInt(m.Iteration, 10),
		"samples": strconv.FormatInt(m.Samples, 10), "config_sha256": m.Digest, "data_sha256": m.Data, metaSHA256: sha}
}
