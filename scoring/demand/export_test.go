package demand

import "github.com/gpu-binpacker/gpu-binpacker/config"

// Inner functions, for the tests.
var (
	AmountOf     = amountOf
	StatusAgrees = statusAgrees
)

// Plus is plus, for the tests.
func (a Amounts) Plus(sign int64, b Amounts) Amounts { return a.plus(sign, b) }

// Few is few, for the tests.
func Few(a Amounts, gpus config.Resources) Amounts { return a.few(gpus) }
