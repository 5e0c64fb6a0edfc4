package straggler

type constant struct{ part Amount }

func newConstant(s Spec, _ Env) Injector { return constant{s.unit()} }

func (c constant) Draw(int64) Amount { return c.part }
