module github.com/dpnoise/dpnoise/clients/go

go 1.19
