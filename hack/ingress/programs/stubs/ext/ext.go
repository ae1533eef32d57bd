package ext

type HTTP struct{}

type Router struct{}
