package local

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Making is the entry with what makes its policy, for packages that add a policy of their own.
func (e Entry) Making(policy func(s Spec, e Env) Policy) Entry {
	e.make = policy
	return e
}

// namePattern is the pattern of a policy's name: a YAML value without quotes.
var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Complete fails if an entry lacks what configurations, explain and the drivers need of it, and names the field.
func (e Entry) Complete() error {
	switch {
	case !namePattern.MatchString(e.Name):
		return errors.New("a name has small letters, digits and _, such as my_averaging")
	case e.Rule == "":
		return errors.New("its Entry lacks the field Rule")
	case e.Source == "":
		return errors.New("its Entry lacks the field Source; it has a source with its evidence tag, or ours")
	case e.make == nil:
		return errors.New("its Entry lacks what makes the policy; call Making")
	case e.Late && e.Fragments:
		return errors.New("its Entry takes over all answers with its push, and exchanges only some of the shards in a " +
			"round; set one of Late and Fragments")
	case e.Take == Mix && !e.Fragments:
		return errors.New("its Entry keeps a share of its own parameters, but without Fragments each round begins with " +
			"the servers'; set Fragments, or Take: Replace")
	case e.Take == Elastic && !e.Late:
		return errors.New("its Entry moves by the answer to its last push, which it compares with when it pushes; set Late, or Take: Replace")
	}
	for path := range e.Defaults {
		if !strings.HasPrefix(path, "local.") {
			return fmt.Errorf("its Defaults have the key %s; they may have keys of local, such as local.steps", path)
		}
	}
	return nil
}
