package workload

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"fluentps/kernels"
)

// Device is what a model of another module may compute on, or ignore.
type Device = kernels.Device

// Lookup returns the model of that name.
func Lookup(name string) (e ModelEntry, known bool) {
	e = modelOf(name)
	return e, e.Name != ""
}

// Add adds models of other modules to the table. It fails if an entry lacks a field or if its name is taken. It must be called before a
// configuration is read, because reading accepts only the models in the table.
func Add(entries ...ModelEntry) error {
	for _, e := range entries {
		if err := e.complete(); err != nil {
			return fmt.Errorf("model %q: %w", e.Name, err)
		}
		if _, there := Lookup(e.Name); there {
			return fmt.Errorf("model %q: the name is taken; choose another one. Taken are %s", e.Name, strings.Join(ModelNames(), ", "))
		}
		e.own = true
		models = append(models, e)
	}
	return nil
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// complete fails if an entry lacks what configurations, plans and ranks that compute need of it, and names the field.
func (e *ModelEntry) complete() error {
	for _, f := range []struct {
		field string
		there bool
	}{{"Doc", e.Doc != ""}, {"Layers", e.Layers != nil}, {"New", e.New != nil}} {
		if !f.there {
			return fmt.Errorf("its ModelEntry lacks the field %s", f.field)
		}
	}
	if !namePattern.MatchString(e.Name) {
		return fmt.Errorf("its name %q is not allowed; a name has small letters, digits and _, such as my_net", e.Name)
	}
	if e.Ratings && (e.Images || e.Sparse) || e.Images && e.Sparse {
		return errors.New("it takes one kind of samples: set one of Images, Ratings and Sparse, or none for rows of numbers")
	}
	return nil
}

// OwnDocs says what the models of other modules are, as a text that follows on those of ours.
func OwnDocs() (text string) {
	for _, m := range models {
		if m.own {
			text += "; " + m.Name + ": " + m.Doc
		}
	}
	return text
}
