package params

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
)

// optimizerPrefix begins the names of optimizer state, as in optimizer.velocity.fc1.weight.
const optimizerPrefix = "optimizer."

// metaSHA256 is the metadata entry against which a reader verifies the parameters.
const metaSHA256 = "parameters_sha256"

// Export writes the tensors of a checkpoint to a file, in the format of its suffix. It writes the complete file or nothing, and replaces a
// file of that name. With optimizer, the file also holds the optimizer state of the servers. Export returns how many tensors it wrote, and
// the sha256 of the parameters in model order, as in summary.json.
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
	f, err := durable.CreateNew(out)
	if err != nil {
		return 0, "", fmt.Errorf("write %s: %w", out, err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if form == suffixNPZ {
		err = writeNPZ(w, list, values)
	} else {
		err = writeSafetensors(w, list, metadata(m, sha), values)
	}
	if err := f.End(errors.Join(err, w.Flush()), true); err != nil {
		return 0, "", fmt.Errorf("write %s: %w", out, err)
	}
	return len(list), sha, nil
}

// metadata says which run and which checkpoint the parameters come from.
func metadata(m *checkpoint.Manifest, sha string) map[string]string {
	all := map[string]string{"program": m.Program, "build": m.Build, "model": m.Config["model.name"],
		"checkpoint": strconv.FormatInt(m.Number, 10), "iteration": strconv.FormatInt(m.Iteration, 10),
		"samples": strconv.FormatInt(m.Samples, 10), "config_sha256": m.Digest, "data_sha256": m.Data, metaSHA256: sha}
	if len(m.Classes) > 0 {
		names, err := json.Marshal(m.Classes)
		if err != nil {
			panic("params: names are texts: " + err.Error())
		}
		all["classes"] = string(names) // a list, in the order of their numbers
	}
	if len(m.Inputs) > 0 {
		all["inputs"] = string(m.Inputs) // how columns of a table become inputs, in their order
	}
	if t := m.Targets; t != nil {
		text, err := json.Marshal(t)
		if err != nil {
			panic("params: a mean and a deviation are finite: " + err.Error())
		}
		all["targets"] = string(text) // a prediction p is mean + deviation*p
	}
	return all
}
