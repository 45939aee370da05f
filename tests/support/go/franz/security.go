package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// secured are the options of TLS and the login, from the environment: FRANZ_CA (a file), FRANZ_CERTIFICATE and FRANZ_KEY (of the
// client, files), FRANZ_MECHANISM with FRANZ_USER and FRANZ_PASSWORD (or a token). What is not set is not used.
func secured() []kgo.Opt {
	var options []kgo.Opt
	if ca := os.Getenv("FRANZ_CA"); ca != "" {
		text, err := os.ReadFile(ca)
		must(err)
		config := &tls.Config{RootCAs: x509.NewCertPool()}
		expect("FRANZ_CA is a certificate", config.RootCAs.AppendCertsFromPEM(text), true)
		if certificate := os.Getenv("FRANZ_CERTIFICATE"); certificate != "" {
			pair, err := tls.LoadX509KeyPair(certificate, os.Getenv("FRANZ_KEY"))
			must(err)
			config.Certificates = []tls.Certificate{pair}
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if mechanism := os.Getenv("FRANZ_MECHANISM"); mechanism != "" {
		options = append(options, kgo.SASL(login(mechanism, os.Getenv("FRANZ_USER"), os.Getenv("FRANZ_PASSWORD"))))
	}
	return options
}

func login(mechanism, user, password string) sasl.Mechanism {
	switch mechanism {
	case "PLAIN":
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) { return oauth.Auth{Token: password}, nil })
	}
	fail("FRANZ_MECHANISM is %s", mechanism)
	return nil
}

// secure sends and reads some records; its topic is named after the mechanism.
func secure(r run) {
	r.sendAndRead(r.topic(os.Getenv("FRANZ_MECHANISM")+"-"+os.Getenv("FRANZ_TOPIC"), 3), 3, 100)
}
