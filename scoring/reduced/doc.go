// Package reduced
package reduced
