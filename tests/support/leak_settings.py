"""Kinds of secrets in files, commands and logs: more templates as in ``leak_kinds``."""

from collections.abc import Mapping, Sequence
from typing import Final

KEYS: Final[Mapping[str, Sequence[str]]] = {
    "jwt": (
        "«eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI{a40}.{x43}»",
        "Cookie: jwt=«eyJhbGciOiJSUzI1NiJ9.eyJ{a50}.{x86}»",
    ),
    "pem key": (
        "-----BEGIN RSA PRIVATE KEY-----\n«MIIE{b60}»\n«{b64}»\n«{b64}»\n«{b40}==»\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN EC PRIVATE KEY-----\n«MHcC{b60}»\n«{b64}»\n-----END EC PRIVATE KEY-----",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\n«MIIF{b60}»\n«{b64}»\n-----END ENCRYPTED PRIVATE KEY-----",
    ),
    "openssh key": (
        "-----BEGIN OPENSSH PRIVATE KEY-----\n«b3BlbnNzaC1rZXkt{b54}»\n"
        "«{b70}»\n«{b70}»\n«{b30}==»\n-----END OPENSSH PRIVATE KEY-----",
    ),
    "pgp key": (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n"
        "«lQOY{b60}»\n«{b64}»\n«={b4}»\n-----END PGP PRIVATE KEY BLOCK-----",
    ),
    "wireguard": ("[Interface]\nPrivateKey = «{b43}=»\nAddress = 10.0.0.2/32", "PresharedKey = «{b43}=»"),
    "kubeconfig": (
        "users:\n- name: ada\n  user:\n    client-certificate-data: {b80}==\n"
        "    client-key-data: «LS0tLS1CRUdJ{b120}==»",
        "  user:\n    token: «{a40}»",
    ),
    "kubernetes secret": (
        "kind: Secret\ndata:\n  db-password: «{b24}==»\n  api-token: «{b32}»",
        "kubectl create secret generic db --from-literal=password=«{pw}»",
        "kind: Secret\nstringData:\n  smtp_pass: «{pw}»",
    ),
    "jwks": ('{"kty": "RSA", "n": "{x86}", "e": "AQAB", "d": "«{x86}»"}', '{"kty": "oct", "k": "«{x43}»"}'),
}

FILES: Final[Mapping[str, Sequence[str]]] = {
    "pgpass": ("# .pgpass\ndb.example.org:5432:tides:ada:«{pw}»",),
    "netrc": (
        "machine api.example.org login ada password «{pw}»",
        "machine example.org\n  login ada\n  password «{pw}»",
    ),
    "wp-config": (
        "define( 'DB_PASSWORD', '«{pw}»' );",
        "define('AUTH_KEY',         '«{x20}%{x20}!{x20}»');\ndefine('NONCE_SALT', '«{x30}$ {x30}»');",
    ),
    "rails": (
        "# config/master.key\nRAILS_MASTER_KEY=«{h32}»",
        "production:\n  secret_key_base: «{h128}»",
        "aws:\n  access_key_id: 123\n  secret_access_key: «{b40}»",
    ),
    "spring": (
        "spring:\n  datasource:\n    username: ada\n    password: «{pw}»",
        "spring.datasource.password=«{pw}»",
        "jwt:\n  secret: «{a48}»",
    ),
    "django": (
        "SECRET_KEY = 'django-insecure-«{x40}»'",
        "EMAIL_HOST_PASSWORD = '«{pw}»'",
        "DATABASES = {'default': {'PASSWORD': '«{pw}»'}}",
    ),
    "laravel": ("APP_KEY=base64:«{b43}=»", "'password' => env('DB_PASSWORD', '«{pw}»'),", "'secret' => '«{a32}»',"),
    "dotnet": (
        '"ConnectionStrings": {"Main": "Server=db;Database=t;User Id=sa;Password=«{pw}»;"}',
        '<add key="ApiSecret" value="«{a32}»" />',
    ),
    "json": (
        '{"user": "ada", "password": "«{pw}»"}',
        '{"apiKey": "«{a32}»"}',
        '"client_secret":"«{x32}»"',
        '{"accessToken":"«{x60}»"}',
    ),
    "yaml": ("db:\n  password: «{pw}»", "api_key: '«{a32}»'", 'secret_key: "«{x40}»"', "auth:\n  pass: «{pw}»"),
    "toml": (
        '[db]\npassword = "«{pw}»"',
        'api-token = "«{a32}»"',
        '[http-basic]\nexample = {username = "ada", password = "«{pw}»"}',
    ),
    "ini": ("[mysqld]\npassword=«{pw}»", "[client]\nuser = ada\npass = «{pw}»", "smtp_password: «{pw}»"),
    "xml": (
        "<server><id>nexus</id><username>ada</username><password>«{pw}»</password></server>",
        '<bean><property name="password" value="«{pw}»"/></bean>',
        "<apiKey>«{a32}»</apiKey>",
    ),
    "hcl": (
        'variable "db_password" {\n  default = "«{pw}»"\n}',
        'secret_key = "«{b40}»"',
        'master_password      = "«{pw}»"',
    ),
    "dockerfile": ("ENV API_TOKEN=«{a32}»", "ENV DB_PASSWORD «{pw}»", "ARG NPM_TOKEN=«{a32}»"),
    "compose": (
        "    environment:\n      - POSTGRES_PASSWORD=«{pw}»",
        "    environment:\n      MYSQL_ROOT_PASSWORD: «{pw}»",
    ),
    "actions": ("env:\n  DEPLOY_KEY: «{a40}»", "        with:\n          github-token: «{a40}»", "::add-mask::«{pw}»"),
    "properties": ("db.password=«{pw}»", "keystore.pass=«{pw}»", "signing.keyPassword=«{pw}»"),
    "htpasswd": ("ada:«$apr1${c8}${c22}»", "ada:«$2y$05${c53}»", "ada:{SHA}«{b27}=»"),
    "shadow": ("ada:«$6${c16}${c86}»:19000:0:99999:7:::", "root:«$y$j9T${c22}${c43}»:19800:0:99999:7:::"),
    "odbc": ("DRIVER={SQL};SERVER=db;UID=sa;PWD=«{pw}»", "Driver=x;Server=db;Uid=sa;Pwd=«{pw}»;"),
    "ansible": ("ansible_become_pass: «{pw}»", "ansible_ssh_pass=«{pw}»", "vault_db_password: «{pw}»"),
    "maven and gradle": ("mavenPassword=«{pw}»", "credentials { username 'ada'; password '«{pw}»' }"),
    "code": (
        'client = Client(api_key="«{a32}»")',
        "const password = '«{pw}»';",
        "conn = psycopg.connect(host='db', user='ada', password='«{pw}»')",
        'private static final String API_SECRET = "«{a32}»";',
        '$password = "«{pw}»";',
        'token := "«{a32}»"',
        "os.environ['STRIPE_SECRET'] = '«{a32}»'",
        "process.env.JWT_SECRET = '«{a32}»'",
        'let secret: &str = "«{a32}»";',
        'headers = {"X-Api-Key": "«{a32}»"}',
        "auth=('ada', '«{pw}»')",
    ),
}

ADDRESSES: Final[Mapping[str, Sequence[str]]] = {
    "postgres url": (
        "DATABASE_URL=postgres://ada:«{pw}»@db.example.org:5432/tides",
        "postgresql+asyncpg://ada:«{a20}»@db/tides",
    ),
    "mysql url": ("mysql://root:«{pw}»@127.0.0.1:3306/tides", "mysql+pymysql://ada:«{a16}»@db/tides?charset=utf8"),
    "mongodb url": ("mongodb+srv://ada:«{a16}»@cluster0.ab1cd.mongodb.net/tides?retryWrites=true",),
    "redis url": ("redis://:«{a24}»@cache:6379/0", "rediss://default:«{a24}»@cache.example.org:6380"),
    "amqp url": ("amqps://ada:«{x24}»@rabbit.example.org/vhost",),
    "jdbc": (
        "jdbc:mysql://db:3306/t?user=ada&password=«{pw}»",
        "jdbc:oracle:thin:ada/«{a12}»@db:1521:xe",
        "jdbc:postgresql://db/t?password=«{a16}»&ssl=true",
    ),
    "sql server": ("Server=tcp:db,1433;Initial Catalog=t;User ID=ada;Password=«{pw}»;Encrypt=True;",),
    "other databases": (
        "clickhouse://default:«{a16}»@ch:9000/t",
        "cockroachdb://ada:«{a16}»@c:26257/t",
        "neo4j+s://neo4j:«{a16}»@n.io",
        "couchbase://ada:«{a12}»@cb",
    ),
    "smtp and ldap": (
        "smtp://ada:«{a16}»@mail.example.org:587",
        "ldap_bind_password: «{pw}»",
        "ftp://ada:«{a12}»@ftp.example.org/x",
    ),
    "git remote": (
        "origin\thttps://ada:«ghp_{a36}»@github.com/ada/t.git (fetch)",
        "https://oauth2:«{a20}»@gitlab.com/t.git",
        "https://«{a40}»@github.com/ada/t.git",
        "git clone https://x-access-token:«ghs_{a36}»@github.com/a/b",
    ),
    "basic auth": (
        "Authorization: Basic «{b28}»",
        "authorization: basic «{b32}==»",
        "'Authorization': 'Basic «{b28}='",
    ),
    "bearer": (
        "Authorization: Bearer «{x40}»",
        '-H "Authorization: Bearer «{a32}»"',
        "authorization: token «{h40}»",
        "Authorization: ApiKey «{b44}==»",
    ),
    "cookies": (
        "Cookie: sessionid=«{a32}»; theme=dark",
        "Set-Cookie: connect.sid=s%3A«{x32}.{a43}»; Path=/; HttpOnly",
        "curl -b 'session=«{x60}»' https://example.org",
    ),
    "query": (
        "https://example.org/a?api_key=«{a32}»&b=1",
        "https://example.org/cb?code=ok#access_token=«{x40}»&x=1",
        "GET /x?token=«{a24}» HTTP/1.1",
        "https://s3.example.org/b/k?X-Amz-Signature=«{h64}»",
    ),
    "headers": (
        "X-API-Key: «{a32}»",
        "x-auth-token: «{a32}»",
        "X-Vault-Token: «{a26}»",
        "X-CSRF-Token: «{b43}=»",
        "Proxy-Authorization: Basic «{b20}=»",
    ),
}

COMMANDS: Final[Mapping[str, Sequence[str]]] = {
    "curl": (
        "curl -u ada:«{pw}» https://example.org",
        "curl --user 'ada:«{pw}»' https://example.org",
        "curl -uada:«{a12}» https://example.org",
        "wget --http-password=«{pw}» https://example.org",
    ),
    "sshpass": (
        "sshpass -p «{pw}» ssh ada@example.org",
        "sshpass -p'«{pw}»' scp a b:",
        "SSHPASS=«{pw}» sshpass -e ssh x",
    ),
    "databases": (
        "mysql -uroot -p«{pw}» tides",
        "mysqldump --password=«{pw}» t",
        "PGPASSWORD=«{pw}» psql -h db",
        "mongosh -u ada -p «{pw}» t",
        "redis-cli -h c -a «{pw}» ping",
        "sqlcmd -S db -U sa -P «{pw}»",
    ),
    "sql": (
        "CREATE USER ada WITH PASSWORD '«{pw}»';",
        "ALTER USER 'ada'@'%' IDENTIFIED BY '«{pw}»';",
        "SET PASSWORD = '«{pw}»'",
    ),
    "logins": (
        "docker login -u ada --password «{pw}» registry",
        "echo «{pw}» | docker login -u ada --password-stdin",
        "az login --service-principal -u x -p «{a34}»",
        "helm registry login -u a -p «{pw}» r",
        "echo «{pw}» | sudo -S apt update",
    ),
    "openssl": (
        "openssl enc -aes-256-cbc -k «{pw}» -in a",
        "openssl rsa -passin pass:«{pw}» -in k",
        "gpg --batch --passphrase «{pw}» -d a",
        "zip -P «{pw}» a.zip b",
        "keytool -storepass «{pw}» -list",
    ),
    "flags": (
        "app --token «{a32}»",
        "app --api-key=«{a32}»",
        "app --password '«{pw}»'",
        "app --client-secret «{x32}»",
        "app --secret=«{a32}» run",
    ),
    "exports": (
        "export DB_PASS=«{pw}»",
        "export SECRET_KEY='«{x40}»'",
        "set -gx API_TOKEN «{a32}»",
        "setenv API_KEY «{a32}»",
        "API_KEY=«{a32}» ./run.sh",
    ),
    "powershell": (
        '$env:API_KEY = "«{a32}»"',
        "$Env:DB_PASSWORD='«{pw}»'",
        "ConvertTo-SecureString '«{pw}»' -AsPlainText -Force",
        "[Environment]::SetEnvironmentVariable('API_TOKEN', '«{a32}»')",
        "set API_SECRET=«{a32}»",
        "setx API_SECRET «{a32}»",
    ),
    "ci log": (
        "2026-11-17T09:12:01Z + DEPLOY_TOKEN=«{a32}» ./deploy",
        "##[debug]INPUT_PASSWORD: «{pw}»",
        "env | sort\nAPI_SECRET=«{a32}»\nHOME=/",
        'declare -x API_SECRET="«{a32}»"',
        "login with user=ada password=«{pw}»",
    ),
    "prose": (
        "the password is «{pw}»",
        "Password: «{pw}»",
        "use pw «{pw}» for staging",
        "my API key is «{a32}», use it",
        "log in as admin / «{pw}»",
        "passphrase: «{pw}»",
        "das Passwort ist «{pw}»",
        "PIN: «{d6}»",
        "the secret is `«{a24}»`",
        "username: ada, password: «{pw}»",
    ),
    "word passwords": (
        "password: «{word} {word}»",
        "password: «{word} {word} {word} {word}»",
        'passphrase = "«{word} {word} {word}»"',
        "DB_PASSWORD='«{word} {word}»'",
        "password: «{word}-{word}-{word}»",
    ),
    "recovery": (
        "seed phrase: «{word} {word} {word} {word} {word} {word} {word} {word} {word} {word} {word} {word}»",
        "recovery codes: «{h5}-{h5}»",
        "otpauth://totp/a:b?secret=«{u32}»&issuer=a",
        "TOTP_SECRET=«{u32}»",
    ),
    "ethereum": ("PRIVATE_KEY=«0x{h64}»", "private key: «{h64}»"),
}
