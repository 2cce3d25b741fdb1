package demand

// Inner functions, for the tests.
var (
	AmountOf     = amountOf
	StatusAgrees = statusAgrees
)

// Plus is plus, for the tests.
func (a Amounts) Plus(sign int64, b Amounts) Amounts { return a.plus(sign, b) }
