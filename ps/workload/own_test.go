package workload

import (
	"slices"
	"strings"
	"testing"

	"fluentps/kernels/cpu"
)

// ownEntry is an entry as another module defines it.
func ownEntry(name string) ModelEntry {
	softmax, _ := Lookup("softmax")
	return ModelEntry{Name: name, Doc: "a model for tests", Hidden: true, Layers: softmax.Layers, New: softmax.New}
}

func TestModelsOfOtherModules(t *testing.T) {
	before := models
	defer func() { models = before }()
	models = slices.Clip(models)
	for want, change := range map[string]func(e *ModelEntry){
		`model "mlp": the name is taken; choose another one. Taken are softmax, linear, mlp`: func(e *ModelEntry) { e.Name = "mlp" },
		`model "My Net": its name "My Net" is not allowed; a name has small letters, digits and _`: func(
			e *ModelEntry) {
			e.Name = "My Net"
		},
		`model "mine": its ModelEntry lacks the field Doc`:    func(e *ModelEntry) { e.Doc = "" },
		`model "mine": its ModelEntry lacks the field Layers`: func(e *ModelEntry) { e.Layers = nil },
		`model "mine": its ModelEntry lacks the field New`:    func(e *ModelEntry) { e.New = nil },
		`model "mine": it takes one kind of samples: set one of Images, Ratings and Sparse, or none for`: func(
			e *ModelEntry) {
			e.Images, e.Sparse = true, true
		},
	} {
		e := ownEntry("mine")
		change(&e)
		if err := Add(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	broken := ownEntry("broken")
	broken.Layers = func(ModelSpec, Samples) []Layer { return []Layer{{Name: "fc"}} }
	if err := Add(ownEntry("mine"), broken); err != nil {
		t.Fatal(err)
	}
	if got := ModelNames(); got[len(got)-2] != "mine" || !slices.Contains(WithLayers(), "mine") ||
		OwnDocs() != "; mine: a model for tests; broken: a model for tests" {
		t.Errorf("names %v, with layers %v, docs %q", got, WithLayers(), OwnDocs())
	}
	if got := ParamNames(ModelSpec{Name: "mine", States: []string{"velocity"}}); !slices.Equal(got,
		[]string{"fc1.weight", "fc1.bias", "fc1.weight.velocity", "fc1.bias.velocity"}) {
		t.Errorf("names of parameters: %v", got)
	}
	from := Samples{Cols: 4, Classes: 2}
	if m, err := NewModel(ModelSpec{Name: "mine"}, from, cpu.New(1), 3); err != nil || m == nil {
		t.Error(err)
	}
	if _, err := NewArchitecture(ModelSpec{Name: "broken"}, from); err == nil || !strings.Contains(err.Error(), "layer fc has no parameters") {
		t.Errorf("an architecture without parameters: %v", err)
	}
}
