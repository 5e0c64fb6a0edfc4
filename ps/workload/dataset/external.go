package dataset

import (
	"errors"

	"fluentps/ps/workload/dataset/files"
)

// ExternalSet is the data of a model in another process.
const ExternalSet = "external"

// elsewhere is a table of which only the number of rows is known: its values are with the model.
type elsewhere struct{ rows int }

func (e elsewhere) Rows() int { return e.rows }

func (e elsewhere) Cols() int { return 0 }

// Fill fills nothing: a model that has the rows takes Batch.Rows.
func (e elsewhere) Fill([]float32, []int32, []int32) {}

func (e elsewhere) holds() (own, common int64) { return 0, 0 }

func loadExternal(s Spec, _ *files.Reading) (*Set, error) {
	if s.Rows < 1 {
		return nil, errors.New("data: rows is 0: set external needs the number of training rows")
	}
	return &Set{Train: elsewhere{s.Rows}, Test: elsewhere{s.TestRows}, Elsewhere: true}, nil
}
