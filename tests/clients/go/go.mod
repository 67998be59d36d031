module github.com/dpnoise/dpnoise/tests/clients/go

go 1.19

require github.com/dpnoise/dpnoise/clients/go v0.0.0

replace github.com/dpnoise/dpnoise/clients/go => ../../../clients/go
