package configs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/schema"
	"fluentps/ps/scheme"
)

const schemaFile = "../../configs/examples/schema.json"

// modeline is the first line of each example: an editor takes the schema that lies beside the file.
const modeline = "# yaml-language-server: $schema=schema.json\n"

func compiled() *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.JSON()))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaFile, doc); err != nil {
		panic(err)
	}
	return c.MustCompile(schemaFile)
}

var schemaOnce = sync.OnceValue(compiled)

// fits takes a file that is accepted to the schema.
func fits(src []byte) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return err
	}
	v, ok := asJSON(doc.Content[0])
	if !ok {
		return errors.New("no JSON")
	}
	return schemaOnce().Validate(v)
}

// asJSON is a file as an editor takes it to the schema; ok is false where JSON cannot hold it.
func asJSON(n *yaml.Node) (v any, ok bool) {
	n = diag.Deref(n)
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if out[key.Value], ok = asJSON(n.Content[i+1]); !ok || key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				return nil, false
			}
		}
		return out, true
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i := range out {
			if out[i], ok = asJSON(n.Content[i]); !ok {
				return nil, false
			}
		}
		return out, true
	}
	switch n.ShortTag() {
	case "!!null":
		return nil, true
	case "!!bool":
		var b bool
		return b, n.Decode(&b) == nil
	case "!!int":
		var i big.Int
		_, ok := i.SetString(strings.ReplaceAll(n.Value, "_", ""), 0)
		return json.Number(i.String()), ok
	case "!!float":
		var f float64
		err := n.Decode(&f)
		return json.Number(fmt.Sprint(f)), err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	return n.Value, true
}

// TestSchemaFile holds the file of the examples to the tables, to the letter: an editor that reads it knows every scheme.
func TestSchemaFile(t *testing.T) {
	if *update {
		if err := os.WriteFile(schemaFile, schema.JSON(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written, schema.JSON()) {
		t.Errorf("%s is not what the tables make; run go test ./internal/configs -update", schemaFile)
	}
}

// TestSchemaAgreesWithCheck: the schema takes what is accepted, and what is refused for no key and no value as such. Of every
// other problem it tells, too, at the same place.
func TestSchemaAgreesWithCheck(t *testing.T) {
	seen := 0
	for name, src := range everySource(t) {
		t.Run(name, func(t *testing.T) { seen += agrees(t, schemaOnce(), src) })
	}
	if seen < 150 {
		t.Errorf("the schema tells of %d problems, want at least 150", seen)
	}
}

// agrees holds the schema to what check says of one file, and counts the problems that both see.
func agrees(t *testing.T, s *jsonschema.Schema, src []byte) (seen int) {
	t.Helper()
	if _, refused := diag.Parse(diag.NewText("", src), src); refused != nil && !refused.Shape {
		return 0 // of which an editor's parser tells
	}
	_, _, ds := Parse("file.yaml", src, Options{})
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		t.Fatal(err)
	}
	v, ok := asJSON(doc.Content[0])
	if !ok {
		return 0
	}
	places := map[string]bool{}
	err := s.Validate(v)
	if failed := (*jsonschema.ValidationError)(nil); errors.As(err, &failed) {
		causes(failed, places)
	}
	for _, d := range ds {
		if !d.Shape {
			continue
		}
		seen++
		if !told(places, d) {
			t.Errorf("the schema does not tell of %s\nit says: %v", d, err)
		}
	}
	if seen == 0 && err != nil {
		t.Errorf("the schema refuses it, and check refuses no key and no value as such: %v\n%s", err, written(t, ds))
	}
	return seen
}

// causes collects the paths at which the schema refuses something.
func causes(e *jsonschema.ValidationError, places map[string]bool) {
	if len(e.Causes) == 0 {
		path := ""
		for _, part := range e.InstanceLocation {
			if _, err := strconv.Atoi(part); err == nil {
				path += "[" + part + "]"
			} else {
				path = diag.Join(path, part)
			}
		}
		places[path] = true
	}
	for _, c := range e.Causes {
		causes(c, places)
	}
}

// told looks for a refusal at the path, or in the section that has the key, or lacks it. An item of a list has its list's path,
// and the keys below sweep have dots.
func told(places map[string]bool, d diag.Diagnostic) bool {
	if strings.HasPrefix(d.Path, keys.SweepKey) {
		return places[keys.SweepKey]
	}
	for place := range places {
		if strings.HasPrefix(place, d.Path+"[") {
			return true
		}
	}
	for path := d.Path; ; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		if places[path] {
			return true
		}
		if path == "" || path != d.Path && d.Msg != "is missing" {
			return false
		}
	}
}

// TestSchemesOfOthers adds a scheme to the table at run time, as another module does.
func TestSchemesOfOthers(t *testing.T) {
	all := scheme.All
	defer func() { scheme.All = all }()
	other, _ := scheme.All.Lookup("ssp")
	other.Name = "theirs"
	scheme.All = append(all[:len(all):len(all)], other)
	src := strings.Replace(base, "scheme: ssp", "scheme: theirs", 1)
	accept(t, src, Options{})
	if seen := agrees(t, compiled(), []byte(src)); seen != 0 {
		t.Errorf("the schema refuses %d keys of it", seen)
	}
}
